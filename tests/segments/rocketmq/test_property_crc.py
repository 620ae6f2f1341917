"""Records that end with a CRC of all of them (`enabledAppendPropCRC`), whoever puts them."""

from __future__ import annotations

from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.message_run import MessageKind, MessageRun
from logstore.segments.rocketmq.messages.system_flags import TRANSACTION_PREPARED
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import BORN, BORN_MS, STORED, batch, draft
from tests.segments.rocketmq.small_store import small_store

ROOMY = {"mappedFileSizeCommitLog": "262144", "mappedFileSizeConsumeQueue": "2000"}


def stored_messages(store: RocketMQStore) -> list[Message]:
    """Return every message of the commit log; a wrong CRC is an error."""
    found: list[Message] = []
    position = 0
    while position < store.commit_log.max_physical_offset:
        head = int.from_bytes(store.commit_log.read(position, 4))
        found.append(decode_message(store.commit_log.read(position, head)))
        position += head
    return found


def test_every_record_ends_with_a_crc_where_the_settings_say_so() -> None:
    """
    `enabledAppendPropCRC` holds for whoever puts, also where the text of a record is put again.

    A broker that recovers with `forceVerifyPropCRC` would cut off what has none, and all behind it.
    """
    host = SimulatedHost()
    settings = {"enabledAppendPropCRC": "true", "forceVerifyPropCRC": "true"}
    store = small_store(host, settings=ROOMY | settings)
    assert store.put_message(draft(body=b"one", properties={"TAGS": "a"})).is_ok
    assert store.put_message(draft(body=b"none")).is_ok
    assert store.put_message(draft(body=b"later", properties={"DELAY": "2"})).is_ok
    assert store.put_message(draft(body=b"half", sys_flag=TRANSACTION_PREPARED)).is_ok
    assert store.put_batch(batch(b"a", b"bb", properties={"KEYS": "k"})).is_ok
    stale = decode_message(store.commit_log.read(0, 4096)).properties
    assert store.put_message(draft(body=b"again", properties=stale)).is_ok
    found = stored_messages(store)
    assert [message.body for message in found] == [
        b"one",
        b"none",
        b"later",
        b"half",
        b"a",
        b"bb",
        b"again",
    ]
    assert all(message.properties_text[-20:].startswith(b"__CRC32#\x01") for message in found)
    assert {message.properties_text.count(b"__CRC32#") for message in found} == {1}
    assert found[2].topic == "SCHEDULE_TOPIC_XXXX"
    store.abandon()
    again = small_store(host, settings=ROOMY | settings)
    assert stored_messages(again) == found


def test_a_run_is_put_one_by_one_where_records_end_with_a_crc() -> None:
    """The short way has no CRC; it is not gone then."""
    store = small_store(SimulatedHost(), settings=ROOMY | {"enabledAppendPropCRC": "true"})
    store.put_message(draft(body=b"first"))
    kind = MessageKind(
        topic="TopicTest",
        queue_id=0,
        flag=0,
        sys_flag=0,
        reconsume_times=0,
        text_before=b"UNIQ_KEY\x01",
        example=b"1",
        text_behind=b"\x02",
        born_host=BORN,
        store_host=STORED,
    )
    run = MessageRun()
    run.add(kind, b"second", b"2", BORN_MS)
    assert not store.put_run(run)
    assert store.commit_log.max_physical_offset == stored_messages(store)[0].size_bytes
