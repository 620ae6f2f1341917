"""Brokers end, or are killed, and start again; what they know by then is read back and compared."""

from __future__ import annotations

import time
from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.segments.rocketmq.tables.java_json import parse_json
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq import pops, transactions
from tests.interop.drawn_rocketmq.excuses import differences, without_checks
from tests.interop.drawn_rocketmq.plain import masked
from tests.interop.drawn_rocketmq.pulls import SUBSCRIBES
from tests.interop.drawn_rocketmq.sends import header, properties_text, short, unique_key
from tests.interop.drawn_rocketmq.twin import Difference
from tests.interop.drawn_rocketmq.world import World

#: short enough to be over while a session lasts, and long enough for a restart in between
SOON_MS = (1_000, 3_000, 8_000)
DUE_SECONDS_MAX = 40
LIGHT = "%LMQ%"
RESTARTS_MAX = 3
#: what is asked for as a whole; how many messages wait for their time is not: a real broker counts
#: those twice that it takes into its wheel while it ends
ALL = (
    Code.GET_ALL_TOPIC_CONFIG, Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Code.GET_ALL_CONSUMER_OFFSET,
    Code.GET_ALL_DELAY_OFFSET, Code.GET_ALL_MESSAGE_REQUEST_MODE, Code.GET_BROKER_RUNTIME_INFO,
    Code.GET_BROKER_CONFIG, Code.GET_ALL_PRODUCER_INFO, Code.GET_BROKER_HA_STATUS,
)  # fmt: skip
#: what each counts of a table's changes, by the code that asks for it
Versions = dict[Code, Pair]
COUNTED = ALL[:3]
EMPTY_AT_FIRST = ("consumerFilter", "consumerOrderInfo", "messageRequestMode", "delayOffset")


def send_light(world: World) -> None:
    """Send what stands in light queues too."""
    topic = f"{world.prefix}-a"
    queues = world.pick("x", "y", "x,y")
    names = ",".join(f"{LIGHT}{world.prefix}{one}" for one in queues.split(","))
    drawn = {"UNIQ_KEY": unique_key(world), "KEYS": "k1", "INNER_MULTI_DISPATCH": names}
    fields = header(world, topic, properties_text(drawn)) | {
        "sysFlag": 0, "queueId": 0, "defaultTopic": "TBW102", "reconsumeTimes": 0,
        "producerGroup": f"{world.prefix}-p", "batch": "false",
    }  # fmt: skip
    world.ask(Code.SEND_MESSAGE_V2, short(fields), b"light", is_plain=True)


def commit_light(world: World) -> None:
    """Commit an offset in a light queue."""
    fields = {
        "consumerGroup": f"{world.prefix}-g0", "queueId": 0, "commitOffset": world.pick(0, 1, 2),
        "topic": f"{LIGHT}{world.prefix}{world.pick('x', 'y')}",
    }  # fmt: skip
    world.ask(Code.UPDATE_CONSUMER_OFFSET, fields, is_plain=True)


def send_soon(world: World) -> None:
    """Send what is due in a moment, before or behind a restart, to a topic of its own."""
    topic = f"{world.prefix}-later{world.next()}"
    drawn = {"UNIQ_KEY": unique_key(world), "TAGS": "A", "KEYS": "k3"}
    drawn |= world.pick(
        {"DELAY": "1"}, {"DELAY": "2"}, {"TIMER_DELAY_MS": "2000"}, {"TIMER_DELAY_SEC": "6"}
    )
    fields = header(world, topic, properties_text(drawn)) | {
        "sysFlag": 0, "queueId": 0, "defaultTopic": "TBW102", "defaultTopicQueueNums": 1,
        "reconsumeTimes": 0, "producerGroup": f"{world.prefix}-p", "batch": "false",
    }  # fmt: skip
    told = world.ask(Code.SEND_MESSAGE_V2, short(fields), b"soon", is_plain=True)
    if told.is_success:
        world.due[topic] = 1


def send_half(world: World) -> None:
    """Send a half message that is young enough not to be asked about while the broker ends."""
    topic = world.chance.choice(list(world.topics))
    group = f"{world.prefix}-p"
    drawn = {"UNIQ_KEY": unique_key(world), "KEYS": "k2", "TRAN_MSG": "true", "PGROUP": group}
    fields = header(world, topic, properties_text(drawn)) | {
        "sysFlag": 4, "queueId": 0, "defaultTopic": "TBW102", "reconsumeTimes": 0,
        "producerGroup": group, "batch": "false", "bornTimestamp": world.now_ms(),
    }  # fmt: skip
    told = world.ask(Code.SEND_MESSAGE_V2, short(fields), b"half", is_plain=True)
    transactions.learn(world, told, topic, drawn["UNIQ_KEY"])


def decide(world: World) -> None:
    """Decide about a half message, if there is one."""
    if world.halves:
        transactions.end(world)


def pop_soon(world: World) -> None:
    """
    Pop what comes again in a moment, unless it is acknowledged or put off by then.

    Each has a group of its own: when something comes again each broker chooses, in some seconds.
    """
    group, topic = f"{world.prefix}-soon{world.next()}", f"{world.prefix}-a"
    fields = pops.pop_fields(world) | {
        "consumerGroup": group, "topic": topic, "queueId": 0, "maxMsgNums": world.pick(1, 2, 32),
        "invisibleTime": world.pick(*SOON_MS), "initMode": 0, "expType": None, "exp": None,
        "order": None, "attemptId": None,
    }  # fmt: skip
    known = len(world.popped)
    pops.learn(world, world.ask(Code.POP_MESSAGE, fields, is_plain=True), fields)
    fresh, world.popped = world.popped[known:], world.popped[:known]
    if fresh and world.likely(0.5):
        one = fresh.pop()
        names = ("consumerGroup", "topic", "queueId", "offset", "extraInfo")
        asked = {name: one[name] for name in names}
        if world.likely(0.6):
            world.ask(Code.ACK_MESSAGE, asked, is_plain=True)
        else:
            asked["invisibleTime"] = pops.INVISIBLE_MS
            world.ask(Code.CHANGE_MESSAGE_INVISIBLETIME, asked, is_plain=True)
    if fresh:
        world.due[f"%RETRY%{group}_{topic}"] = len(fresh)


def restart(world: World) -> None:
    """End both and start them again; most often in peace."""
    if world.restarts >= RESTARTS_MAX:
        return
    again(world, kill=world.likely(0.35))


def again(world: World, *, kill: bool) -> None:
    """End both and start them again."""
    assert world.stage is not None, "nobody says how to restart the brokers"
    world.restarts += 1
    # While it ends a real broker looks once more at half messages, and gives up the old ones.
    world.ask(Code.UPDATE_BROKER_CONFIG, None, b"transactionTimeOut=3600000", is_plain=True)
    is_settled = world.likely(0.5)
    if is_settled:
        await_due(world)
        read_back(world)
    before = versions(world)
    if kill:
        world.stage.wait_until_saved()
    world.twin.hang_up_everywhere("a kill" if kill else "a restart")
    world.stage.stop(kill=kill)
    if is_settled and not kill:  # a real one needs ten seconds to end, and delivers meanwhile
        compare_tables(world)
    world.stage.start()
    if not kill:  # what a real one counts of being started is saved only when it ends, or changes
        compare_versions(world, before, versions(world))
    await_due(world)
    read_back(world)


def compare_versions(world: World, before: Versions, after: Versions) -> None:
    """Compare by how much each table's version has gone on."""
    ours, real = (
        {code.name: after[code][side] - before[code][side] for code in COUNTED} for side in (0, 1)
    )
    # Who starts the real one has it register its topics at once, which counts as a change.
    real[Code.GET_ALL_TOPIC_CONFIG.name] -= 1
    if found := differences(ours, real, ""):
        world.twin.differences.append(Difference(len(world.twin.steps), "versions", found))


def compare_tables(world: World) -> None:
    """Compare what stands in the files of tables."""
    assert world.stage is not None
    ours, real = (without_checks(masked(one)) for one in world.stage.tables())
    for tables in (ours, real):
        for name in EMPTY_AT_FIRST:  # at its end a real broker writes what was never written to
            if not any_rows(tables.get(name)):
                tables.pop(name, None)
    if found := differences(ours, real, ""):
        world.twin.differences.append(Difference(len(world.twin.steps), "tables", found))


def any_rows(table: Any) -> bool:
    """Tell whether something stands in a table."""
    rows = [one for name, one in (table or {}).items() if name != "dataVersion"]
    return any(isinstance(one, dict) and one for one in rows)


def versions(world: World) -> Versions:
    """Return how often each table has changed."""
    found: Versions = {}
    for code in COUNTED:
        told = world.twin.exchange(world.request(code, {}, is_plain=True, version=513))
        found[code] = told.pair(
            lambda answer: parse_json(answer.body.decode())["dataVersion"]["counter"]
        ) or Pair(0, 0)
    return found


def read_back(world: World) -> None:
    """Ask for all that both are to know."""
    # Of the retry topics of pops a real one tells its name server only when it registers.
    world.ask(Code.UPDATE_BROKER_CONFIG, None, b"brokerPermission=6", is_plain=True)
    for code in ALL:
        plainly(world, code, {})
    queues = [(topic, one) for topic, count in world.topics.items() for one in range(count)]
    queues += [(topic, 0) for topic in world.due]
    queues += [(f"{LIGHT}{world.prefix}{one}", 0) for one in "xy"]
    for topic, queue in dict.fromkeys(queues):
        read_queue(world, topic, queue)
    for topic in dict.fromkeys(topic for topic, _ in queues):
        plainly(world, Code.GET_TOPIC_STATS_INFO, {"topic": topic})
        plainly(world, Code.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": topic})
        for key in ("k1", "k2", "k3"):
            asked = {"topic": topic, "key": key, "maxNum": 64, "beginTimestamp": 0,
                     "endTimestamp": 2**62}  # fmt: skip
            plainly(world, Code.QUERY_MESSAGE, asked)
        world.ask(Code.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}, line="names", is_plain=True)
    for number in range(3):
        group = f"{world.prefix}-g{number}"
        plainly(world, Code.GET_CONSUME_STATS, {"consumerGroup": group})
        plainly(world, Code.QUERY_TOPICS_BY_CONSUMER, {"group": group})
    for one in world.sent[-20:]:
        plainly(world, Code.VIEW_MESSAGE_BY_ID, {"offset": one.physical_offset})


def read_queue(world: World, topic: str, queue: int) -> None:
    """Ask for the bounds of a queue, and for all that stands in it."""
    place = {"topic": topic, "queueId": queue}
    for code in (Code.GET_MAX_OFFSET, Code.GET_MIN_OFFSET, Code.GET_EARLIEST_MSG_STORETIME):
        plainly(world, code, place)
    for boundary in ("LOWER", "UPPER"):
        for timestamp in (0, world.now_ms() + 60_000):
            asked = {**place, "timestamp": timestamp, "boundaryType": boundary}
            plainly(world, Code.SEARCH_OFFSET_BY_TIMESTAMP, asked)
    for offset in (0, 32, 64):
        asked = {
            **place, "consumerGroup": "reads-back", "queueOffset": offset, "maxMsgNums": 32,
            "sysFlag": SUBSCRIBES, "commitOffset": 0, "suspendTimeoutMillis": 0,
            "subscription": "*", "subVersion": 1, "expressionType": "TAG",
        }  # fmt: skip
        plainly(world, Code.PULL_MESSAGE, asked)
    plainly(world, Code.QUERY_CONSUME_QUEUE, {**place, "index": 0, "count": 20})


def plainly(world: World, code: int, fields: dict[str, Any]) -> None:
    """Ask without anything odd."""
    world.ask(code, fields, is_plain=True, version=513, serializer=0)


def await_due(world: World) -> None:
    """Wait for all that comes by itself."""
    deadline = time.monotonic() + DUE_SECONDS_MAX
    for topic, count in world.due.items():
        asked = world.request(
            Code.GET_MAX_OFFSET, {"topic": topic, "queueId": 0}, is_plain=True, version=513
        )
        while time.monotonic() < deadline:
            told = world.twin.exchange(asked)
            ends = told.pair(lambda answer: int((answer.fields or {})["offset"]))
            if ends is not None and min(ends) >= count:
                break
            time.sleep(0.1)


def end(world: World) -> None:
    """Restart once more."""
    again(world, kill=False)
