"""The codec of one message."""

from __future__ import annotations

import zlib

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import RejectedAppendError
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import (
    CorruptMessageError,
    Message,
    decode_message,
    encode_message,
)
from logstore.segments.rocketmq.messages.message_draft import (
    MessageDraft,
    blank_entry,
    draft_message,
)
from logstore.segments.rocketmq.messages.message_layout import MessageVersion

#: of the reference; its CRC, hosts and times are those of a real encoder
VECTOR = bytes.fromhex(
    "0000007bdaa320a73610a6860000000300000000000000000000000700000000000004000000000000"
    "00018bcfe568000a0000050000c3500000018bcfe5687b0a00000100002a9f00000000000000000000"
    "00000000000568656c6c6f09546f706963546573740012544147530154616741024b455953016b3102"
)
BORN = HostAddress.of("10.0.0.5", 50000)
STORE = HostAddress.of("10.0.0.1", 10911)


def draft(topic: str = "TopicTest", body: bytes = b"hello", **changes: object) -> MessageDraft:
    """Return the draft of the vector, or one that differs from it."""
    given_fields = {
        "queue_id": 3,
        "properties_text": b"TAGS\x01TagA\x02KEYS\x01k1\x02",
        "born_timestamp_ms": 1700000000000,
        "born_host": BORN,
        "store_host": STORE,
    }
    return draft_message(topic=topic, body=body, **(given_fields | changes))  # type: ignore[arg-type]


def stored(one: MessageDraft, queue_offset: int = 7, physical_offset: int = 1024) -> bytes:
    """Return the record that a draft becomes."""
    one.stamp(queue_offset, 1700000000123)
    return bytes(one.stamped(physical_offset).data)


def test_the_vector_is_written_and_read() -> None:
    """A draft becomes the bytes of the reference, and they say what was drafted."""
    assert stored(draft()) == VECTOR
    message = decode_message(VECTOR)
    assert message == Message(
        topic="TopicTest",
        body=b"hello",
        queue_id=3,
        properties_text=b"TAGS\x01TagA\x02KEYS\x01k1\x02",
        flag=0,
        sys_flag=0,
        born_timestamp_ms=1700000000000,
        born_host=BORN,
        store_timestamp_ms=1700000000123,
        store_host=STORE,
        reconsume_times=0,
        prepared_transaction_offset=0,
        queue_offset=7,
        physical_offset=1024,
        size_bytes=123,
        body_crc=907060870,
    )
    assert (message.tags, message.keys, message.tags_code) == ("TagA", ("k1",), 2598919)
    assert message.offset_message_id == "0A00000100002A9F0000000000000400"


hosts = st.builds(
    HostAddress,
    st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)),
    st.integers(0, 65535),
)
drafts = st.builds(
    draft_message,
    topic=st.one_of(st.text(min_size=1, max_size=30), st.text("abc/", min_size=120, max_size=140)),
    body=st.binary(max_size=300),
    queue_id=st.integers(0, 2**31 - 1),
    properties_text=st.binary(max_size=100),
    flag=st.integers(-(2**31), 2**31 - 1),
    sys_flag=st.integers(0, 0x7FF),
    born_timestamp_ms=st.integers(0, 2**62),
    born_host=hosts,
    store_host=hosts,
    reconsume_times=st.integers(0, 100),
    prepared_transaction_offset=st.integers(0, 2**62),
    has_property_crc=st.booleans(),
)


@given(drafts, st.integers(0, 2**62), st.integers(0, 2**61), st.binary(max_size=20))
def test_what_is_drafted_is_read(
    one: MessageDraft, queue_offset: int, physical_offset: int, behind: bytes
) -> None:
    """Any draft, stamped, is read back field by field, whatever stands behind it."""
    data = stored(one, queue_offset, physical_offset)
    assert len(data) == one.size_bytes
    message = decode_message(b"\xff" * 3 + data + behind, 3)
    for name in (
        "queue_id",
        "flag",
        "sys_flag",
        "born_timestamp_ms",
        "born_host",
        "store_timestamp_ms",
        "store_host",
        "reconsume_times",
        "prepared_transaction_offset",
        "body_crc",
        "version",
        "body",
    ):
        assert getattr(message, name) == getattr(one, name), name
    assert message.topic == one.topic.encode("utf-8", "replace").decode()
    assert (message.queue_offset, message.physical_offset) == (queue_offset, physical_offset)
    assert message.properties_text.startswith(one.properties_text)
    assert encode_message(message) == data


@given(drafts, st.data())
def test_every_flipped_bit_under_a_checksum_is_seen(one: MessageDraft, data: st.DataObject) -> None:
    """A flipped bit of the body never comes out as the message that was stored."""
    record = bytearray(stored(one))
    if one.body_size_bytes == 0:
        return
    start = 80 + len(one.born_host.address) + len(one.store_host.address)
    assert record[start : start + one.body_size_bytes] == one.body
    position = data.draw(st.integers(start, start + one.body_size_bytes - 1))
    record[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptMessageError, match="CRC"):
        decode_message(record)
    decode_message(record, verify_crc=False)


def test_a_record_cut_anywhere_is_refused() -> None:
    """There is no length at which the beginning of a record passes for a message."""
    for size_bytes in range(len(VECTOR)):
        with pytest.raises(CorruptMessageError, match="position 0: "):
            decode_message(VECTOR[:size_bytes])


def test_what_is_no_message_is_named() -> None:
    """A BLANK, another magic and parts that do not add up are told apart, with the position."""
    with pytest.raises(CorruptMessageError, match="position 0: magic cbd43194 is a BLANK"):
        decode_message(bytes(memoryview(blank_entry(0, 400).data)) + bytes(392))
    with pytest.raises(CorruptMessageError, match="position 2: magic 00000000 is no message"):
        decode_message(bytes(100), 2)
    longer = (124).to_bytes(4) + VECTOR[4:] + b"x"
    with pytest.raises(
        CorruptMessageError, match="its parts end at 123, the record at 124"
    ) as info:
        decode_message(longer)
    assert info.value.skip_bytes == 124


def test_long_topics_get_version_2() -> None:
    """127 characters fit version 1, 128 need version 2, unless a version is asked for."""
    for topic, version in (("t" * 127, MessageVersion.V1), ("t" * 128, MessageVersion.V2)):
        data = stored(draft(topic))
        assert data[4:8] == version.magic
        assert decode_message(data).topic == topic
        assert decode_message(data).version is version
    wide = draft("\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 43, version=MessageVersion.V2)
    assert wide.topic_size_bytes == 129
    assert decode_message(stored(wide)).topic == wide.topic


def test_ipv6_hosts_set_their_bits_and_take_20_bytes() -> None:
    """The bits follow the hosts, also where the client's flag says otherwise."""
    there = HostAddress.of("fd00::27d", 1)
    for born, store, bits in (
        (BORN, STORE, 0),
        (there, STORE, 0x10),
        (BORN, there, 0x20),
        (there, there, 0x30),
    ):
        data = stored(draft(born_host=born, store_host=store, sys_flag=0x38))
        message = decode_message(data)
        assert message.sys_flag == 0x08 | bits
        assert (message.born_host, message.store_host) == (born, store)
        assert len(data) == len(VECTOR) + 12 * (bits >> 4).bit_count()


def test_the_property_crc_covers_the_whole_record() -> None:
    """It stands last, least digit first, is computed after stamping, and every byte counts."""
    data = stored(draft(has_property_crc=True, properties_text=b"TAGS\x01TagA"))
    crc = zlib.crc32(data[:-20]) & 0x7FFF_FFFF
    assert data[-30:] == b"TAGS\x01TagA\x02" + b"__CRC32#\x01%b\x02" % f"{crc:010d}"[::-1].encode()
    decode_message(data)
    for position in (20, 28, 40, len(data) - 25):
        bad = bytearray(data)
        bad[position] ^= 1
        with pytest.raises(CorruptMessageError, match="CRC in the properties"):
            decode_message(bad)


def test_properties_may_take_32767_bytes() -> None:
    """The limit counts the property CRC; what exceeds it is refused when it is stamped."""
    assert draft(properties_text=b"x" * 32767).properties_size_bytes == 32767
    assert len(stored(draft(properties_text=b"x" * 32767))) == 123 - 18 + 32767
    too_long = draft(properties_text=b"x" * 32747, has_property_crc=True)
    assert too_long.properties_size_bytes == 32768
    with pytest.raises(RejectedAppendError, match="32768 bytes"):
        stored(too_long)


def test_a_draft_may_change_before_it_is_stamped() -> None:
    """Another topic, queue and properties give the record that they would have given at once."""
    one = draft("half")
    one.replace_topic("TopicTest" * 20, 5)
    one.replace_properties(b"a\x01b\x02")
    assert stored(one) == stored(draft("TopicTest" * 20, queue_id=5, properties_text=b"a\x01b\x02"))
    one.replace_topic("TopicTest", 3)
    one.replace_properties(b"TAGS\x01TagA\x02KEYS\x01k1\x02")
    assert stored(one) == VECTOR


def test_a_draft_tells_tags_and_keys() -> None:
    """They are read from the text of the properties."""
    one = draft(properties_text=b"KEYS\x01a b\x02UNIQ_KEY\x01u\x02TAGS\x01TagB")
    assert (one.tags, one.tags_code, one.keys, one.unique_key) == ("TagB", 2598920, "a b", "u")
    bare = draft(properties_text=b"")
    assert (bare.tags, bare.tags_code, bare.keys, bare.unique_key) == (None, 0, "", None)


def test_a_blank_takes_the_rest_of_its_file() -> None:
    """It is written as eight bytes and counts as many as it says."""
    blank = blank_entry(4000, 96)
    assert (blank.base_offset, blank.next_offset, blank.size_bytes) == (4000, 4096, 96)
    assert bytes(memoryview(blank.data)) == bytes.fromhex("00000060cbd43194")
    assert blank.is_blank
    assert not draft().stamped(0).is_blank


def test_a_changed_message_is_encoded_as_changed() -> None:
    """The size in front follows the parts."""
    message = attrs.evolve(decode_message(VECTOR), body=b"other body", body_crc=1)
    again = decode_message(encode_message(message), verify_crc=False)
    assert again == attrs.evolve(message, size_bytes=128)
