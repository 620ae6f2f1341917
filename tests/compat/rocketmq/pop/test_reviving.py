"""What is not acknowledged comes again, what is does not, also after a stop in between."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from logstore.compat.offload import run_at_once
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import TOPIC, decoded
from tests.compat.rocketmq.pop.pop_stage import GROUP, REVIVED_WITHIN_MS, PopStage

RETRY = f"%RETRY%{GROUP}_{TOPIC}"
REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_DefaultCluster"


@pytest.mark.parametrize("invisible_ms", [1, 500, 3000, 10_000, 60_000])
def test_comes_again(invisible_ms: int) -> None:
    """A message that nobody acknowledges comes after its time, not before, and counts that."""
    stage = PopStage()
    stage.produce(b"a", tags="x")
    (first,) = stage.popped(invisibleTime=invisible_ms)
    popped_ms = stage.clock.wall_ms()
    stage.pass_ms(invisible_ms)
    assert stage.popped(invisibleTime=invisible_ms) == []
    stage.pass_ms(REVIVED_WITHIN_MS)
    (again,) = stage.popped(invisibleTime=invisible_ms)
    message = again.message
    assert (message.body, message.topic, message.tags) == (b"a", TOPIC, "x")
    assert message.reconsume_times == first.message.reconsume_times + 1 == 1
    assert message.properties["1ST_POP_TIME"] == str(popped_ms)
    assert message.properties["ORIGIN_GROUP"] == GROUP
    assert again.handle.split(" ")[4:] == ["1", "broker-a", "0", "0"]
    assert stage.committed(RETRY) == 1


def test_looked_for_as_often_as_is_said() -> None:
    """Settings hold from the next look on."""
    stage = PopStage(reviveInterval="20000")
    stage.produce(b"a")
    assert stage.bodies(invisibleTime=1000) == [b"a"]
    stage.pass_ms(19_000)
    assert stage.bodies() == []
    stage.pass_ms(1500)
    assert stage.bodies(invisibleTime=1000) == [b"a"]
    stage.broker.update_settings({"reviveInterval": "100"})
    stage.pass_ms(20_000)
    assert stage.bodies(invisibleTime=1000) == [b"a"]
    stage.pass_ms(3300)
    assert stage.bodies() == [b"a"]


def test_comes_again_and_again() -> None:
    """Each time it comes again it is counted once more, in the same retry topic."""
    stage = PopStage()
    stage.produce(b"a")
    for times in range(4):
        (popped,) = stage.popped(invisibleTime=2000)
        assert popped.message.reconsume_times == times
        stage.pass_ms(2000 + REVIVED_WITHIN_MS)
    assert [topic for topic in stage.broker.topics.table.topics if "%RETRY%" in topic] == [RETRY]


def test_acknowledged() -> None:
    """What is acknowledged in time does not come again; the others of its pop do."""
    stage = PopStage()
    stage.produce(b"a", b"b", b"c")
    popped = stage.popped()
    assert stage.ack(popped[1]).code == 0
    stage.pass_ms(10_000 + REVIVED_WITHIN_MS)
    assert stage.bodies() == [b"a", b"c"]


@pytest.mark.parametrize(("after_ms", "leap_ms"), [(700, 3000), (5300, 4000), (0, 1000)])
def test_acknowledged_while_all_waits_in_the_pool(after_ms: int, leap_ms: int) -> None:
    """An acknowledgement counts that has not left the transient store pool when time is over."""
    stage = PopStage(flushDiskType="ASYNC_FLUSH", transientStorePoolEnable="true")
    stage.produce(b"a")
    stage.broker.store.commit_log.commit()
    (popped,) = stage.popped()
    stage.pass_ms(after_ms)
    stage.ack(popped)
    for _ in range(30):
        stage.clock.advance(leap_ms)  # a broker that was held up
        stage.broker.timers.run()
    stage.pass_ms(REVIVED_WITHIN_MS)
    assert stage.bodies() == []


@pytest.mark.parametrize("is_acked", [True, False])
@pytest.mark.parametrize(("sync_ms", "after_ms"), [(3000, 1500), (4500, 0), (7000, 900), (700, 0)])
def test_acknowledged_while_all_waits_for_the_disk(
    sync_ms: int, after_ms: int, *, is_acked: bool
) -> None:
    """However long a sync takes an acknowledgement counts; and what has none comes again."""
    stage = PopStage(flushDiskType="SYNC_FLUSH")
    stage.produce(b"a")
    (popped,) = stage.popped()
    under_way: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
    stage.broker.offload = lambda work, done: under_way.append((work, done))
    stage.pass_ms(after_ms)
    if is_acked:
        stage.peer.send(RequestCode.ACK_MESSAGE, popped.fields())
    for _ in range(40_000 // sync_ms):
        stage.pass_ms(sync_ms)
        ended, under_way[:] = under_way[:], []
        for work, done in ended:
            run_at_once(work, done)
    stage.broker.offload = run_at_once
    for work, done in under_way:
        run_at_once(work, done)
    stage.pass_ms(REVIVED_WITHIN_MS)
    assert stage.bodies() == ([] if is_acked else [b"a"])


def test_acknowledged_just_before_a_stop() -> None:
    """The wheel hands out the acknowledgement, which comes to it late, before the checkpoint."""
    stage = PopStage()
    stage.produce(b"a", b"b", b"c")
    popped = stage.popped()
    stage.pass_ms(3000)
    for one in popped[:2]:
        assert stage.ack(one).code == 0
    stage.broker.close()
    stage.clock.advance(60_000)
    stage.open()
    stage.pass_ms(REVIVED_WITHIN_MS)
    assert stage.bodies() == [b"c"]


def test_acknowledged_in_a_batch() -> None:
    """A batch acknowledges many messages of a pop, those that came again as well."""
    stage = PopStage()
    stage.produce(*(b"%02d" % number for number in range(20)))
    popped = stage.popped(invisibleTime=3000)
    assert stage.ack_batch(*popped[:3], *popped[10:]).code == 0
    stage.pass_ms(3000 + REVIVED_WITHIN_MS)
    again = stage.popped(invisibleTime=3000)
    assert [one.message.body for one in again] == [b"%02d" % number for number in range(3, 10)]
    assert stage.ack_batch(*again).code == 0
    stage.pass_ms(3000 + REVIVED_WITHIN_MS)
    assert stage.bodies() == []


def test_acknowledged_when_it_came_again() -> None:
    """An acknowledgement of a message that came again names the retry topic."""
    stage = PopStage()
    stage.produce(b"a")
    stage.pop(invisibleTime=1000)
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    (again,) = stage.popped(invisibleTime=1000)
    assert stage.ack(again).code == 0
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    assert stage.bodies() == []


def test_acknowledged_a_little_late() -> None:
    """An acknowledgement right after the invisible time still counts, as in Java."""
    stage = PopStage()
    stage.produce(b"a")
    (popped,) = stage.popped(invisibleTime=5000)
    stage.pass_ms(5500)
    stage.ack(popped)
    stage.pass_ms(10_000)
    assert stage.bodies() == []


def test_another_time() -> None:
    """A changed time counts from now, in place of the first one; the new handle acknowledges."""
    stage = PopStage()
    stage.produce(b"a", b"b")
    first, second = stage.popped(invisibleTime=3000)
    stage.pass_ms(1)
    answer = stage.change(first, 30_000)
    assert answer.fields == {
        "popTime": str(stage.clock.wall_ms()),
        "invisibleTime": "30000",
        "reviveQid": first.handle.split(" ")[3],
    }
    stage.pass_ms(3000 + REVIVED_WITHIN_MS)
    assert stage.bodies() == [b"b"]
    stage.pass_ms(30_000)
    assert b"a" in stage.bodies()
    assert second.message.body == b"b"


@pytest.mark.parametrize(("suspend", "times"), [("false", 1), ("true", 0)])
def test_put_off_without_having_failed(suspend: str, times: int) -> None:
    """What is suspended comes again without being counted (5.5)."""
    stage = PopStage()
    stage.produce(b"a")
    (popped,) = stage.popped(invisibleTime=20_000)
    stage.change(popped, 1000, suspend=suspend)
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    (again,) = stage.popped()
    assert again.message.reconsume_times == times


@pytest.mark.parametrize("invisible_ms", [1000, 1500, 5000])
def test_another_time_at_once(invisible_ms: int) -> None:
    """A message that is put off in the millisecond in which it was popped comes again, too."""
    stage = PopStage()
    stage.produce(b"a")
    (popped,) = stage.popped(invisibleTime=1000)
    assert stage.change(popped, invisible_ms).code == ResponseCode.SUCCESS
    stage.pass_ms(invisible_ms - 1)
    assert stage.bodies() == []
    stage.pass_ms(1 + REVIVED_WITHIN_MS)
    (again,) = stage.popped()
    stage.ack(again)
    stage.pass_ms(30_000)
    assert len(stage.peer.messages(RETRY)) == 1


def test_many() -> None:
    """Thousands of messages come again, each once."""
    stage = PopStage()
    bodies = {b"%d" % number for number in range(1500)}
    stage.produce(*bodies)
    for _ in range(47):
        stage.pop(invisibleTime=2000)
    stage.pass_ms(2000 + REVIVED_WITHIN_MS)
    again: list[bytes] = []
    while found := stage.bodies(invisibleTime=60_000):
        again += found
    assert len(again) == 1500
    assert set(again) == bodies


@pytest.mark.parametrize("end", ["close", "abandon", "power loss"])
def test_after_a_restart(end: str) -> None:
    """What was popped before a stop and not acknowledged comes; what was acknowledged does not."""
    stage = PopStage()
    stage.produce(b"a", b"b", b"c")
    popped = stage.popped(invisibleTime=20_000)
    stage.ack(popped[0])
    stage.pass_ms(12_000)  # offsets are written, and the log is flushed
    stage.produce(b"d")
    if end == "close":
        stage.broker.close()
    else:
        stage.broker.abandon()
    if end == "power loss":
        stage.host.power_loss()
    stage.open()
    stage.pass_ms(20_000 + REVIVED_WITHIN_MS)
    bodies = stage.bodies(invisibleTime=60_000)
    assert [body for body in bodies if body != b"d"] == [b"b", b"c"]
    assert end == "power loss" or b"d" in bodies


@pytest.mark.parametrize("wait_ms", [0, 100, 4900, 5100, 6500, 9000, 11_900])
def test_power_loss_at_any_time(wait_ms: int) -> None:
    """Whenever the power goes, a message that was durable is not lost by having been popped."""
    stage = PopStage()
    stage.produce(b"a", b"b")
    stage.pass_ms(25_000)
    assert len(stage.popped(invisibleTime=3000)) == 2
    stage.pass_ms(wait_ms)
    stage.broker.abandon()
    stage.host.power_loss()
    stage.open()
    found: set[bytes] = set()
    for _ in range(4):
        found.update(stage.bodies(invisibleTime=60_000))
        stage.pass_ms(3000)
    assert found == {b"a", b"b"}


def test_a_kill_before_the_checkpoint_came_out_of_the_wheel() -> None:
    """A checkpoint that only the time wheel knows has the revive service begin when it comes."""
    stage = PopStage()
    stage.produce(b"a")
    stage.pop(invisibleTime=30_000)
    stage.broker.store.consumer_offsets.persist()
    stage.broker.abandon()
    stage.open()
    assert not stage.broker.has_popped
    stage.pass_ms(30_000 + REVIVED_WITHIN_MS)
    assert stage.broker.has_popped
    assert [message.body for message in stage.peer.messages(RETRY)] == [b"a"]


def test_a_disk_that_refuses() -> None:
    """What cannot be put again is tried until it can, and comes once."""
    stage = PopStage()
    stage.produce(b"a")
    stage.pop(invisibleTime=2000)
    stage.pass_ms(2000)
    stage.broker.store.putting.closed_reason = "for a while"
    stage.pass_ms(10_000)
    stage.broker.store.putting.closed_reason = ""
    stage.pass_ms(REVIVED_WITHIN_MS)
    assert stage.bodies() == [b"a"]
    stage.pass_ms(3000)
    assert stage.bodies() == []


def test_topics_of_the_second_kind() -> None:
    """With enableRetryTopicV2 messages come again from group+topic; old ones are still found."""
    stage = PopStage()
    stage.produce(b"old")
    stage.pop(invisibleTime=1000)
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    stage.broker.update_settings({"enableRetryTopicV2": "true"})
    stage.produce(b"new")
    found: list[bytes] = []
    for _ in range(20):
        found += stage.bodies(invisibleTime=2000)
    assert sorted(found) == [b"new", b"old"]
    stage.pass_ms(2000 + REVIVED_WITHIN_MS)
    assert f"%RETRY%{GROUP}+{TOPIC}" in stage.broker.topics.table.topics
    again: dict[bytes, str] = {}
    for _ in range(20):
        for one in stage.popped(invisibleTime=60_000):
            again[one.message.body] = one.handle.split(" ")[4]
    assert again == {b"new": "2", b"old": "1"}


def test_shown_as_they_are() -> None:
    """With popResponseReturnActualRetryTopic messages that come again keep their topic."""
    stage = PopStage(popResponseReturnActualRetryTopic="true")
    stage.produce(b"a")
    stage.pop(invisibleTime=1000)
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    (message,) = decoded(stage.pop().body)
    assert (message.topic, "POP_CK" in message.properties) == (RETRY, False)


def test_a_topic_that_is_gone() -> None:
    """Checkpoints of a topic that was deleted are passed over; others go on."""
    stage = PopStage()
    stage.produce(b"a")
    stage.peer.produce(b"b", topic="gone")
    stage.pop(topic="gone", invisibleTime=1000)
    stage.pop(invisibleTime=1000)
    stage.peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "gone"})
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    assert stage.bodies() == [b"a"]
    assert f"%RETRY%{GROUP}_gone" not in stage.broker.topics.table.topics


def test_what_is_no_checkpoint() -> None:
    """Whatever stands in the revive topic, the service goes on."""
    stage = PopStage()
    stage.produce(b"a")
    stage.pop(invisibleTime=1000)
    for tags in ("ck", "ack", "bAck", "else"):
        for body in (
            b"{}",
            b"[]",
            b"\xff",
            b'{"n":5,"t":"t","c":"c","d":[1]}',
            b'{"t":1,"ao":"x"}',
        ):
            assert (
                stage.peer.produce(body, topic=REVIVE_TOPIC, properties=f"TAGS\x01{tags}\x02").code
                == 0
            )
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    assert stage.bodies() == [b"a"]


@pytest.mark.parametrize("offset", [-1, 99])
def test_acknowledged_elsewhere(offset: int) -> None:
    """An acknowledgement outside of the queue is refused."""
    stage = PopStage()
    stage.produce(b"a")
    (popped,) = stage.popped()
    assert stage.ack(popped, offset=offset).code == ResponseCode.NO_MESSAGE
    assert stage.change(popped, 1, offset=offset).code == ResponseCode.NO_MESSAGE
    assert stage.ack(popped, queueId=77).code == ResponseCode.MESSAGE_ILLEGAL
    assert stage.ack(popped, topic="nix").code == ResponseCode.TOPIC_NOT_EXIST
    assert stage.ack(popped, extraInfo="1 2").code == ResponseCode.SYSTEM_ERROR


def test_synced_before_it_is_answered() -> None:
    """With SYNC_FLUSH an acknowledgement is durable once it is answered."""
    stage = PopStage(flushDiskType="SYNC_FLUSH")
    stage.produce(b"a", b"b")
    popped = stage.popped(invisibleTime=3000)
    stage.ack(popped[0])
    stage.broker.store.consumer_offsets.persist()
    stage.broker.abandon()
    stage.host.power_loss()
    stage.open()
    stage.pass_ms(3000 + REVIVED_WITHIN_MS)
    assert stage.bodies() == [b"b"]


def stored_again(stage: PopStage, properties: str) -> str:
    """Have a message of these properties come again; return those it has then, n for times."""
    assert stage.peer.produce(b"a", properties=properties).code == 0
    assert stage.popped(invisibleTime=1000)
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    (message,) = stage.peer.messages(RETRY)
    text = re.sub(rb"[0-9]{13}", b"n", message.properties_text).decode()
    return text.replace("\x01", "=").replace("\x02", " ")


def test_properties_stand_as_a_real_broker_has_them() -> None:
    """In the order of 5.5.0: of a map that begins with the tags, or is made for those there are."""
    assert stored_again(PopStage(), "UNIQ_KEY\x01K\x02TAGS\x01A\x02KEYS\x01k1 k2\x02") == (
        f"ORIGIN_GROUP={GROUP} TRACE_ON=true MSG_REGION=DefaultRegion KEYS=k1 k2 UNIQ_KEY=K "
        "CLUSTER=DefaultCluster 1ST_POP_TIME=n TAGS=A "
    )
    assert stored_again(PopStage(), "UNIQ_KEY\x01K\x02") == (
        f"ORIGIN_GROUP={GROUP} UNIQ_KEY=K CLUSTER=DefaultCluster TRACE_ON=true 1ST_POP_TIME=n "
        "MSG_REGION=DefaultRegion "
    )


def test_a_delay_level_is_waited_for_once_more() -> None:
    """As with a real broker: a message that was delayed comes again that much later."""
    stage = PopStage()
    assert stage.peer.produce(b"a", properties="DELAY\x013\x02").code == 0
    stage.pass_ms(11_000)
    assert stage.popped(invisibleTime=1000)
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    assert stage.popped(invisibleTime=1000) == []
    stage.pass_ms(11_000)
    (again,) = stage.popped(invisibleTime=1000)
    assert again.message.reconsume_times == 1


def test_a_count_of_attempts_goes_round() -> None:
    """One more than the largest is the smallest, as in Java; what follows comes again, too."""
    stage = PopStage()
    assert stage.peer.produce(b"often", j=2**31 - 1).code == 0
    stage.produce(b"once")
    assert stage.bodies(invisibleTime=2000) == [b"often", b"once"]
    stage.pass_ms(2000 + REVIVED_WITHIN_MS)
    times = {one.message.body: one.message.reconsume_times for one in stage.popped()}
    assert times == {b"often": -(2**31), b"once": 1}
