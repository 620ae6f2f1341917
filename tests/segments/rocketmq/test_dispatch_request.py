"""What stands at a place of the commit log, as those who build on it are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    Blank,
    DispatchRequest,
    read_dispatch_request,
    request_of,
)
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_draft import (
    MessageDraft,
    blank_entry,
    draft_message,
)

HOST = HostAddress.of("10.0.0.5", 50000)


def draft(topic: str = "t", text: bytes = b"", **changes: object) -> MessageDraft:
    """Return a message that was stamped for queue offset 7, physical offset 1024."""
    fields: dict[str, object] = {
        "body": b"hello",
        "queue_id": 3,
        "born_timestamp_ms": 1,
        "born_host": HOST,
        "store_host": HOST,
    }
    one = draft_message(topic=topic, properties_text=text, **(fields | changes))  # type: ignore[arg-type]
    one.stamp(7, 1700000000123)
    one.stamped(1024)
    return one


def record(topic: str = "t", text: bytes = b"", **changes: object) -> bytes:
    """Return the bytes of such a message."""
    return bytes(memoryview(draft(topic, text, **changes).stamped(1024).data))


def read(data: bytes, position: int = 0, **options: object) -> DispatchRequest:
    """Return the request at a position."""
    found = read_dispatch_request(data, position, **options)  # type: ignore[arg-type]
    assert isinstance(found, DispatchRequest)
    return found


@given(
    st.text(min_size=1, max_size=20),
    st.sampled_from([b"", b"TAGS\x01TagA\x02KEYS\x01a b\x02", b"UNIQ_KEY\x01u\x02TAGS\x01x"]),
    st.sampled_from([0, 4, 8, 12]),
)
def test_a_fresh_message_is_dispatched_as_a_read_one(topic: str, text: bytes, flag: int) -> None:
    """The request of a draft and the request of its bytes are the same."""
    one = draft(topic, text, sys_flag=flag, prepared_transaction_offset=99)
    ours, other = request_of(one), read(record(topic, text, sys_flag=flag))
    for name in set(DispatchRequest.__slots__) - {"topic", "prepared_transaction_offset"}:
        assert getattr(ours, name) == getattr(other, name), name
    assert ours.prepared_transaction_offset == 99
    assert (ours.tags, ours.keys, ours.unique_key) == (other.tags, other.keys, other.unique_key)
    assert ours.next_physical_offset == 1024 + one.size_bytes


def test_messages_of_the_schedule_topic_carry_when_they_are_due() -> None:
    """Their tags code is what the delay levels say; everywhere else it is the hash of the tags."""

    def deliver_time(level: int, stored_ms: int) -> int:
        return stored_ms + min(level, 18) * 1000

    text = b"TAGS\x01TagA\x02DELAY\x013\x02"
    assert read(record("t", text), deliver_time=deliver_time).tags_code == 2598919
    scheduled = record("SCHEDULE_TOPIC_XXXX", text)
    assert read(scheduled, deliver_time=deliver_time).tags_code == 1700000003123
    assert read(scheduled).tags_code == 2598919
    for level in (b"0", b"-1", b"x"):
        odd = record("SCHEDULE_TOPIC_XXXX", b"TAGS\x01TagA\x02DELAY\x01%b\x02" % level)
        assert read(odd, deliver_time=deliver_time).tags_code == 2598919
    one = draft("SCHEDULE_TOPIC_XXXX", text)
    assert request_of(one, deliver_time).tags_code == 1700000003123


def test_a_blank_is_told_from_a_message() -> None:
    """It says how much of the file is left."""
    data = bytes(memoryview(blank_entry(0, 64).data)) + bytes(56)
    assert read_dispatch_request(data) == Blank(64)
    with pytest.raises(CorruptMessageError, match="64 bytes long, 60 are there"):
        read_dispatch_request(data[:60])


@pytest.mark.parametrize("version", [None, "V2"])
def test_a_record_cut_anywhere_is_refused(version: str | None) -> None:
    """Where it ends does not matter, and there is nothing to skip."""
    data = record("t" * 200 if version else "t", b"TAGS\x01TagA\x02")
    for size_bytes in range(len(data)):
        with pytest.raises(CorruptMessageError) as info:
            read_dispatch_request(data[:size_bytes])
        assert info.value.skip_bytes == -1


def test_parts_that_do_not_add_up_can_be_skipped() -> None:
    """A reader is told how long the record claims to be, as Java's is."""
    data = record()
    with pytest.raises(CorruptMessageError, match="its parts end") as info:
        read_dispatch_request((len(data) + 3).to_bytes(4) + data[4:] + bytes(3))
    assert info.value.skip_bytes == len(data) + 3


def test_checksums_are_checked_when_asked() -> None:
    """A flipped byte of the body, or of anything under a property CRC."""
    data = bytearray(record(has_property_crc=True))
    assert read(bytes(data), verify_crc=True, verify_property_crc=True).size_bytes == len(data)
    data[90] ^= 1
    assert read(bytes(data)).size_bytes == len(data)
    with pytest.raises(CorruptMessageError, match="the body's CRC"):
        read(bytes(data), verify_crc=True)
    data[90] ^= 1
    data[41] ^= 1
    read(bytes(data), verify_crc=True)
    with pytest.raises(CorruptMessageError, match="CRC in the properties is not"):
        read(bytes(data), verify_crc=True, verify_property_crc=True)
    with pytest.raises(CorruptMessageError, match="hold no CRC"):
        read(record(), verify_property_crc=True)


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        (b"DUP_INFO\x01a_b", True),
        (b"DUP_INFO\x01a", False),
        (b"DUP_INFO\x01a_b_c", False),
        (b"", False),
    ],
)
def test_duplication_demands_its_two_parts(text: bytes, is_good: bool) -> None:
    """With duplication enabled a message without a DUP_INFO of two parts is none."""
    assert read(record("t", text)).properties_text == text
    if is_good:
        assert read(record("t", text), verify_dup_info=True).properties_text == text
    else:
        with pytest.raises(CorruptMessageError, match="DUP_INFO"):
            read(record("t", text), verify_dup_info=True)


@pytest.mark.parametrize(
    ("text", "base", "count"),
    [
        (b"INNER_BASE\x0140\x02INNER_NUM\x013", 40, 3),
        (b"INNER_NUM\x013", -1, -1),
        (b"INNER_BASE\x0140", -1, -1),
        (b"INNER_BASE\x0140\x02INNER_NUM\x0140000", 40, -1),
        (b"INNER_BASE\x01x\x02INNER_NUM\x013", -1, 3),
    ],
)
def test_inner_batches_say_where_they_start_and_how_many_they_are(
    text: bytes, base: int, count: int
) -> None:
    """Only both properties together make an inner batch; what is no number in range is -1."""
    request = read(record("t", text))
    assert (request.message_base_offset, request.batch_size) == (base, count)
