"""Every outcome of a put, and where a message goes that is not for now."""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping

import attrs
import pytest

from logstore.segments.rocketmq.messages.message import decode_message
from logstore.segments.rocketmq.messages.system_flags import (
    INNER_BATCH,
    NEED_UNWRAP,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.segments.rocketmq.upkeep.running_flags import RunningFlag
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import BORN_MS, batch, draft
from tests.segments.rocketmq.small_store import bodies, small_store

ROOMY = {
    "mappedFileSizeCommitLog": "262144",
    "mappedFileSizeConsumeQueue": "2000",
    "maxMessageSize": "65536",
}


@pytest.fixture
def host() -> SimulatedHost:
    """An empty world."""
    return SimulatedHost()


def roomy(host: SimulatedHost, settings: Mapping[str, str] | None = None) -> RocketMQStore:
    """Open a store with room for some messages."""
    return small_store(host, settings={**ROOMY, **(settings or {})})


def test_a_put_says_where_the_message_stands(host: SimulatedHost) -> None:
    """Physical offset, queue offset, size, store time and id of a message are what was written."""
    store = roomy(host)
    first, second = store.put_message(draft(body=b"one")), store.put_message(draft(body=b"two"))
    assert (first.status, first.physical_offset, first.queue_offset) == (
        PutMessageStatus.PUT_OK,
        0,
        0,
    )
    assert (second.physical_offset, second.queue_offset) == (first.size_bytes, 1)
    assert first.store_timestamp_ms == host.clock.wall_ms()
    assert second.message_ids == [f"0A00000100002A9F{first.size_bytes:016X}"]
    stored = decode_message(store.commit_log.read(second.physical_offset, second.size_bytes))
    assert (stored.body, stored.queue_offset, stored.physical_offset) == (
        b"two",
        1,
        second.physical_offset,
    )
    assert (stored.store_timestamp_ms, stored.born_timestamp_ms) == (host.clock.wall_ms(), BORN_MS)


def test_every_queue_counts_for_itself(host: SimulatedHost) -> None:
    """Queue offsets are those of a topic's queue, whatever else is put between."""
    store = roomy(host)
    places = [("A", 0), ("B", 0), ("A", 1), ("A", 0), ("B", 0), ("A", 0)]
    found = [store.put_message(draft(topic, b"x", number)).queue_offset for topic, number in places]
    assert found == [0, 0, 0, 1, 1, 2]


def test_a_batch_gets_queue_offsets_in_a_row_and_an_id_each(host: SimulatedHost) -> None:
    """Its records stand one behind the other; the next message of the queue follows them."""
    store = roomy(host)
    store.put_message(draft(body=b"first"))
    result = store.put_batch(batch(b"a", b"bb", b"ccc"))
    assert (result.status, result.queue_offset, result.count) == (PutMessageStatus.PUT_OK, 1, 3)
    assert len(result.message_ids) == 3
    assert result.next_physical_offset == store.commit_log.max_physical_offset
    assert store.put_message(draft(body=b"last")).queue_offset == 4
    assert store.dispatch() == 5
    assert bodies(store) == [b"first", b"a", b"bb", b"ccc", b"last"]


def test_a_batch_that_does_not_fit_moves_to_the_next_file_as_a_whole(host: SimulatedHost) -> None:
    """None of its records stays behind, and the file ends in a BLANK."""
    store = small_store(host)
    first = store.put_message(draft(body=bytes(2500)))
    result = store.put_batch(batch(bytes(700), bytes(700)))
    assert result.physical_offset == 4096
    blank = store.commit_log.peek(first.next_physical_offset, 8)
    assert blank == struct.pack(">i", 4096 - first.size_bytes) + bytes.fromhex("cbd43194")
    store.dispatch()
    assert [len(body) for body in bodies(store)] == [2500, 700, 700]


@attrs.frozen
class Refused:
    """A put that is refused: how it is made, the status, a word of the reason."""

    name: str
    status: PutMessageStatus
    word: str
    topic: str = "TopicTest"
    body: bytes = b"hello"
    properties: Mapping[str, str] = attrs.field(factory=dict[str, str])
    sys_flag: int = 0
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])


REFUSED = [
    Refused("long topic", PutMessageStatus.MESSAGE_ILLEGAL, "128 bytes", topic="t" * 128),
    Refused("long topic in UTF-8", PutMessageStatus.MESSAGE_ILLEGAL, "129 bytes", topic="标" * 43),
    Refused(
        "long retry topic",
        PutMessageStatus.MESSAGE_ILLEGAL,
        "256 bytes",
        topic="%RETRY%" + "g" * 249,
    ),
    Refused("long body", PutMessageStatus.MESSAGE_ILLEGAL, "maxMessageSize", body=bytes(65537)),
    Refused(
        "long record",
        PutMessageStatus.MESSAGE_ILLEGAL,
        "mappedFileSizeCommitLog",
        body=bytes(65536),
        settings={"mappedFileSizeCommitLog": "65536"},
    ),
    Refused(
        "long properties",
        PutMessageStatus.PROPERTIES_SIZE_EXCEEDED,
        "32767",
        properties={"a": "x" * 32765},
    ),
    Refused(
        "inner batch number alone",
        PutMessageStatus.MESSAGE_ILLEGAL,
        "INNER_NUM",
        properties={"INNER_NUM": "3"},
    ),
    Refused(
        "inner batch in a plain topic",
        PutMessageStatus.MESSAGE_ILLEGAL,
        "BatchCQ",
        properties={"INNER_NUM": "3"},
        sys_flag=INNER_BATCH,
    ),
    Refused(
        "slave", PutMessageStatus.SERVICE_NOT_AVAILABLE, "master", settings={"brokerRole": "SLAVE"}
    ),
    Refused(
        "timer without wheel",
        PutMessageStatus.WHEEL_TIMER_NOT_ENABLE,
        "timerWheelEnable",
        properties={"TIMER_DELAY_MS": "9000"},
        settings={"timerWheelEnable": "false"},
    ),
    Refused(
        "timer of no number",
        PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL,
        "soon",
        properties={"TIMER_DELAY_SEC": "soon"},
    ),
    Refused(
        "timer too far away",
        PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL,
        "timerMaxDelaySec",
        properties={"TIMER_DELAY_SEC": str(4 * 24 * 3600)},
    ),
    Refused(
        "removal of a timer that is due",
        PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL,
        "due",
        properties={"TIMER_DELIVER_MS": "1600000000000", "TIMER_DEL_UNIQKEY": "u"},
    ),
    Refused(
        "one light queue too many",
        PutMessageStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED,
        "maxLmqConsumeQueueNum",
        properties={"INNER_MULTI_DISPATCH": "%LMQ%a"},
        settings={
            "enableLmq": "true",
            "enableMultiDispatch": "true",
            "enableLmqQuota": "true",
            "maxLmqConsumeQueueNum": "0",
        },
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_breaks_a_rule_is_refused_and_changes_nothing(
    case: Refused, host: SimulatedHost
) -> None:
    """The status is Java's, the reason says what is wrong, nothing is appended or counted."""
    store = roomy(host, case.settings)
    result = store.put_message(
        draft(case.topic, case.body, properties=case.properties, sys_flag=case.sys_flag)
    )
    assert (result.status, result.message_ids) == (case.status, [])
    assert case.word in result.reason
    assert store.commit_log.wrote_where == 0
    assert store.max_queue_offset(case.topic, 0, is_committed=False) == 0
    assert store.stats.put_failed_times == 1


def test_a_body_of_the_largest_size_is_taken(host: SimulatedHost) -> None:
    """The limit is inclusive, and so are those of topics and properties."""
    store = roomy(host)
    assert store.put_message(draft(body=bytes(65536))).is_ok
    assert store.put_message(draft("t" * 127)).is_ok
    assert store.put_message(draft("%RETRY%" + "g" * 248)).is_ok
    assert store.put_message(draft(properties={"a": "x" * 32764})).is_ok
    assert store.put_message(draft(body=b"")).is_ok


@pytest.mark.parametrize(
    "flag",
    [flag for flag in RunningFlag if flag is not RunningFlag.NOT_READABLE],
    ids=lambda flag: flag.name,
)
def test_no_put_while_a_flag_says_so(flag: RunningFlag, host: SimulatedHost) -> None:
    """Each running flag but the one about reads refuses puts; cleared, they are taken again."""
    store = roomy(host)
    store.running_flags.raise_flag(flag)
    refused = store.put_message(draft()), store.put_batch(batch(b"a"))
    assert {result.status for result in refused} == {PutMessageStatus.SERVICE_NOT_AVAILABLE}
    assert all(str(flag.name) in result.reason for result in refused)
    store.running_flags.lower_flag(flag)
    assert store.put_message(draft()).is_ok


def test_no_put_into_a_store_that_is_closed_or_only_read(host: SimulatedHost) -> None:
    """The answer is SERVICE_NOT_AVAILABLE, with the reason."""
    store = roomy(host)
    store.close()
    closed = store.put_message(draft())
    reading = small_store(host, is_writable=False, settings=ROOMY).put_message(draft())
    assert closed.status is reading.status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert "closed" in closed.reason
    assert "reading" in reading.reason


def test_while_the_disk_stalls_other_puts_are_told_so(host: SimulatedHost) -> None:
    """Beyond osPageCacheBusyTimeOutMills other puts are answered OS_PAGE_CACHE_BUSY."""
    store = roomy(host)
    found: list[PutMessageStatus] = []

    class Stalling:
        """A draft that takes its time while it is written, and sees another put come."""

        def __init__(self, delay_ms: int) -> None:
            self.inner = draft(body=b"slow")
            self.delay_ms = delay_ms

        def __getattr__(self, name: str) -> object:
            if name == "stamped":
                host.clock.advance(self.delay_ms)
                found.append(store.put_message(draft(body=b"other")).status)
            return getattr(self.inner, name)

    for delay_ms in (900, 1100):
        store.put_message(Stalling(delay_ms))  # type: ignore[arg-type]
    assert found == [PutMessageStatus.PUT_OK, PutMessageStatus.OS_PAGE_CACHE_BUSY]
    assert store.putting.lock_time_ms == 0


def test_batches_take_no_part_in_transactions(host: SimulatedHost) -> None:
    """A batch with a transaction's flag, or one that is too large, is refused."""
    store = roomy(host)
    marked = store.put_batch(batch(b"a", sys_flag=TRANSACTION_PREPARED))
    large = store.put_batch(batch(bytes(40000), bytes(40000)))
    assert marked.status is large.status is PutMessageStatus.MESSAGE_ILLEGAL
    assert "maxMessageSize" in large.reason
    assert store.commit_log.wrote_where == 0


@pytest.mark.parametrize("sys_flag", [TRANSACTION_PREPARED, TRANSACTION_ROLLBACK])
def test_prepared_and_rolled_back_messages_use_no_queue_offset(
    sys_flag: int, host: SimulatedHost
) -> None:
    """They stand in the commit log with queue offset 0 and in no queue; a commit is a message."""
    store = roomy(host)
    store.put_message(draft(body=b"a"))
    unseen = store.put_message(draft(body=b"b", sys_flag=sys_flag))
    committed = store.put_message(draft(body=b"c", sys_flag=TRANSACTION_COMMIT))
    store.dispatch()
    assert (unseen.is_ok, unseen.queue_offset, committed.queue_offset) == (True, 0, 1)
    assert bodies(store) == [b"a", b"c"]


def test_a_delay_level_sends_a_message_to_the_schedule_topic(host: SimulatedHost) -> None:
    """Its queue is the level's; where it was to go stands in its properties, in Java's order."""
    store = roomy(host)
    result = store.put_message(draft(queue_id=2, properties={"DELAY": "3", "TAGS": "T"}))
    store.dispatch()
    (message,) = store.queue("SCHEDULE_TOPIC_XXXX", 2).messages(0, 10)
    assert result.queue_offset == 0
    assert message.properties == {
        "DELAY": "3",
        "TAGS": "T",
        "REAL_TOPIC": "TopicTest",
        "REAL_QID": "2",
    }
    assert list(message.properties) == ["DELAY", "TAGS", "REAL_TOPIC", "REAL_QID"]
    assert store.max_queue_offset("TopicTest", 2) == 0


def test_units_of_the_schedule_topic_say_when_a_message_is_due(host: SimulatedHost) -> None:
    """In the place of the tags code stands store time plus delay; a level too high is the last."""
    store = roomy(host)
    store.put_message(draft(properties={"DELAY": "99"}))
    store.dispatch()
    queue = store.consume_queues.get("SCHEDULE_TOPIC_XXXX", 17)
    assert queue is not None
    due_ms = int.from_bytes(queue.units(0, 1)[12:], "big", signed=True)
    assert due_ms == host.clock.wall_ms() + 2 * 3600 * 1000
    (message,) = store.queue("SCHEDULE_TOPIC_XXXX", 17).messages(0, 1)
    assert message.properties["DELAY"] == "18"


def test_a_delivered_message_keeps_its_delay_level_and_goes_where_it_was_to_go(
    host: SimulatedHost,
) -> None:
    """A put that is a delivery is not delayed again."""
    store = roomy(host)
    store.put_message(draft(body=b"now", properties={"DELAY": "3"}), is_delivery=True)
    store.dispatch()
    assert bodies(store) == [b"now"]


def test_a_prepared_message_is_not_delayed(host: SimulatedHost) -> None:
    """The delay level of a half message counts when it is committed."""
    store = roomy(host)
    store.put_message(draft(properties={"DELAY": "3"}, sys_flag=TRANSACTION_PREPARED))
    store.dispatch()
    assert store.consume_queues.get("SCHEDULE_TOPIC_XXXX", 2) is None


@pytest.mark.parametrize(
    ("properties", "expected_ms"),
    [
        ({"TIMER_DELAY_SEC": "5"}, 1_700_000_004_000),
        ({"TIMER_DELAY_MS": "5500"}, 1_700_000_005_000),
        ({"TIMER_DELIVER_MS": "1700000009000"}, 1_700_000_008_000),
    ],
    ids=["seconds", "milliseconds", "time"],
)
def test_a_delivery_time_sends_a_message_to_the_time_wheel(
    properties: dict[str, str], expected_ms: int, host: SimulatedHost
) -> None:
    """Its time is rounded down to the wheel's precision, one tick earlier if it is a round one."""
    store = roomy(host)
    store.put_message(draft(queue_id=1, properties=properties))
    store.dispatch()
    (message,) = store.queue("rmq_sys_wheel_timer", 0).messages(0, 10)
    assert message.properties["TIMER_OUT_MS"] == str(expected_ms)
    assert message.properties["REAL_TOPIC"] == "TopicTest"
    assert message.properties["REAL_QID"] == "1"


def test_a_delivery_time_that_is_past_is_now(host: SimulatedHost) -> None:
    """The message goes to its topic at once."""
    store = roomy(host)
    store.put_message(draft(body=b"late", properties={"TIMER_DELIVER_MS": "1600000000000"}))
    store.dispatch()
    assert bodies(store) == [b"late"]


def test_a_delay_level_wins_over_a_delivery_time(host: SimulatedHost) -> None:
    """The message is delayed by its level, and the time is forgotten."""
    store = roomy(host)
    store.put_message(draft(properties={"TIMER_DELAY_SEC": "5", "DELAY": "1"}))
    store.dispatch()
    (message,) = store.queue("SCHEDULE_TOPIC_XXXX", 0).messages(0, 10)
    assert "TIMER_DELAY_SEC" not in message.properties


def test_a_wheel_that_is_full_there_takes_no_more(host: SimulatedHost) -> None:
    """What the time wheel refuses is WHEEL_TIMER_FLOW_CONTROL."""
    store = roomy(host)

    class FullWheel:
        """Has no room at all."""

        has_limit = True

        def is_full_at(self, deliver_ms: int) -> bool:
            """Say so."""
            return deliver_ms > 0

    store.putting.timer = FullWheel()
    result = store.put_message(draft(properties={"TIMER_DELAY_SEC": "5"}))
    assert result.status is PutMessageStatus.WHEEL_TIMER_FLOW_CONTROL


LMQ = {"enableLmq": "true", "enableMultiDispatch": "true"}


def test_a_message_may_be_in_light_queues_too(host: SimulatedHost) -> None:
    """Each named queue gets a unit; the queue offsets there stand in the message."""
    store = roomy(host, LMQ)
    for number in range(2):
        store.put_message(
            draft(
                body=b"%d" % number,
                queue_id=3,
                properties={"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b", "WAIT": "true"},
            )
        )
    store.put_message(draft(body=b"2", properties={"INNER_MULTI_DISPATCH": "%LMQ%b"}))
    store.dispatch()
    assert bodies(store, queue_id=3) == [b"0", b"1"]
    assert bodies(store, "%LMQ%a") == [b"0", b"1"]
    assert bodies(store, "%LMQ%b") == [b"0", b"1", b"2"]
    message = store.queue("%LMQ%b", 0).messages(1, 1)[0]
    assert message.properties["INNER_MULTI_QUEUE_OFFSET"] == "1,1"
    assert message.properties["WAIT"] == "true"


def test_light_queues_go_on_after_a_restart(host: SimulatedHost) -> None:
    """Their next queue offsets are taken from their units."""
    store = roomy(host, LMQ)
    store.put_message(draft(properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    store.close()
    store = roomy(host, LMQ)
    store.put_message(draft(properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    store.dispatch()
    assert store.max_queue_offset("%LMQ%a", 0) == 2


def test_without_the_settings_light_queues_are_only_a_property(host: SimulatedHost) -> None:
    """A broker that has multi-dispatch off stores the message as it is."""
    store = roomy(host)
    store.put_message(draft(properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    store.dispatch()
    assert store.consume_queues.get("%LMQ%a", 0) is None


def test_an_inner_batch_is_one_record_of_many_messages(host: SimulatedHost) -> None:
    """Queue offsets go on by the number of messages; the first one stands in the record."""
    store = roomy(host)
    store.topic_table.put(TopicConfig("Batches", attributes={"queue.type": "BatchCQ"}))
    flag = INNER_BATCH | NEED_UNWRAP
    for number in (3, 2):
        store.put_message(
            draft("Batches", b"items", properties={"INNER_NUM": str(number)}, sys_flag=flag)
        )
    store.dispatch()
    found = store.queue("Batches", 0).messages(0, 10)
    assert [message.properties["INNER_BASE"] for message in found] == ["0", "3"]
    assert (store.min_queue_offset("Batches", 0), store.max_queue_offset("Batches", 0)) == (0, 5)


def test_a_full_disk_is_told_and_forgotten(host: SimulatedHost) -> None:
    """The put fails with the disk's reason, nothing of it remains, the next one succeeds."""
    store = roomy(host)
    store.put_message(draft(body=b"before"))
    host.fs.faults.fail_next("write", errno.ENOSPC, path="*/commitlog/*")
    failed = store.put_message(draft(body=b"lost"))
    assert failed.status is PutMessageStatus.UNKNOWN_ERROR
    assert "commitlog" in failed.reason
    after = store.put_message(draft(body=b"after"))
    store.dispatch()
    assert (after.is_ok, after.queue_offset) == (True, 1)
    assert bodies(store) == [b"before", b"after"]


def test_no_room_for_the_next_file_is_its_own_status(host: SimulatedHost) -> None:
    """CREATE_MAPPED_FILE_FAILED; the log goes on once there is room."""
    store = small_store(host)
    host.fs.faults.fail_next("open", errno.ENOSPC, path="*/commitlog/*")
    failed = store.put_message(draft(body=bytes(500)))
    assert failed.status is PutMessageStatus.CREATE_MAPPED_FILE_FAILED
    assert failed.status.name_in_4x == "CREATE_MAPEDFILE_FAILED"
    assert store.put_message(draft(body=bytes(500))).queue_offset == 0


def test_puts_are_counted_and_timed(host: SimulatedHost) -> None:
    """Messages and bytes by topic; the runtime table has Java's names."""
    store = roomy(host)
    assert store.runtime()["commitLogMinOffset"] == "-1"
    sizes = [store.put_message(draft("A")).size_bytes, store.put_message(draft("A")).size_bytes]
    store.put_batch(batch(b"x", b"y", topic="B"))
    assert store.stats.put_times_by_topic == {"A": 2, "B": 2}
    assert store.stats.put_size_bytes_by_topic["A"] == sum(sizes)
    runtime = store.runtime()
    assert runtime["putMessageTimesTotal"] == "4"
    assert runtime["commitLogMinOffset"] == "0"
    assert runtime["commitLogMaxOffset"] == str(store.commit_log.max_physical_offset)
    assert runtime["dispatchBehindBytes"] == str(store.commit_log.max_physical_offset)
