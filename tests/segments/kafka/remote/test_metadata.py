"""What is known of a segment, as JSON and as Kafka's own topic has it."""

from __future__ import annotations

import json
import random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import iterate_batches
from logstore.segments.kafka.remote import (
    ObjectKind,
    ObjectSum,
    RemotePartition,
    SegmentId,
    SegmentMetadata,
    SegmentState,
)
from logstore.segments.kafka.remote.metadata_records import (
    MetadataRecordError,
    SegmentUpdate,
    decode_value,
    encode_metadata,
    encode_update,
    fold,
)
from logstore.segments.kafka.remote.object_names import parse_directory, parse_object
from tests.damage import damaged
from tests.segments.kafka.remote.stored import TIERED

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
PARTITIONS = st.builds(
    RemotePartition,
    st.text("ab-_.9", min_size=1, max_size=9),
    st.integers(0, 2**31 - 1),
    st.binary(min_size=16, max_size=16),
)


@st.composite
def segments(draw: st.DrawFn) -> SegmentMetadata:
    """Any segment that there may be."""
    start = draw(st.integers(0, 2**62))
    epochs = draw(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**62), max_size=4))
    sums = st.builds(ObjectSum, st.integers(0, 2**40), st.integers(0, 2**32 - 1))
    return SegmentMetadata(
        partition=draw(PARTITIONS),
        segment=SegmentId(start, draw(st.binary(min_size=16, max_size=16))),
        end_offset=start + draw(st.integers(0, 2**40)),
        max_timestamp_ms=draw(INT64),
        size_bytes=draw(st.integers(0, 2**31 - 1)),
        leader_epochs=tuple(sorted(epochs.items())),
        state=draw(st.sampled_from(SegmentState)),
        broker_id=draw(INT32),
        event_timestamp_ms=draw(INT64),
        is_transaction_index_empty=draw(st.booleans()),
        custom_metadata=draw(st.one_of(st.none(), st.binary(max_size=200))),
        sums=draw(st.dictionaries(st.sampled_from(ObjectKind), sums)),
    )


def topic_values() -> list[bytes]:
    """Return what a real broker wrote to its metadata topic."""
    (log,) = (TIERED / "data" / "__remote_log_metadata-0").glob("*.log")
    return [
        record.value or b""
        for batch in iterate_batches(memoryview(log.read_bytes()))
        for record in decode_records(batch.data)
    ]


@given(metadata=segments())
def test_a_manifest_says_all_of_it(metadata: SegmentMetadata) -> None:
    """JSON and back, nothing is lost."""
    assert SegmentMetadata.from_json(metadata.to_json(), "manifest") == metadata


@given(metadata=segments())
def test_kafkas_form_says_all_but_the_sums(metadata: SegmentMetadata) -> None:
    """The topic's form and back; it has no place for the sums of objects."""
    assert decode_value(encode_metadata(metadata)) == attrs.evolve(metadata, sums={})


def test_the_brokers_own_values_come_out_byte_for_byte() -> None:
    """Each value of a real broker is read and written again: the same bytes."""
    values = topic_values()
    kinds = {SegmentMetadata: 0, SegmentUpdate: 0}
    for value in values:
        said = decode_value(value)
        assert said is not None
        again = encode_metadata(said) if isinstance(said, SegmentMetadata) else encode_update(said)
        assert again == value
        kinds[type(said)] += 1
    assert min(kinds.values()) >= 9


def test_what_dump_log_segments_printed_is_what_we_read() -> None:
    """The tool's own reading of the topic names the same segments, ends and states."""
    printed = (TIERED / "remote-log-metadata.txt").read_text()
    for value in topic_values():
        said = decode_value(value)
        assert said is not None
        if isinstance(said, SegmentMetadata):
            assert (
                f"startOffset={said.start_offset}, endOffset={said.end_offset}, "
                f"brokerId={said.broker_id}, maxTimestampMs={said.max_timestamp_ms}, "
                f"eventTimestampMs={said.event_timestamp_ms}"
            ) in printed
        else:
            assert f"state={said.state.name}, eventTimestampMs={said.event_timestamp_ms}" in printed


def test_only_finished_segments_are_readable() -> None:
    """A segment counts from its second record on, and no more once its deletion began."""
    values = topic_values()
    found = fold(values)
    assert len(found) == len(values) // 2
    assert fold(values[:1]) == []
    gone = SegmentUpdate(
        found[0].partition, found[0].segment.uuid, 1, 5, None, SegmentState.DELETE_SEGMENT_STARTED
    )
    assert fold([*values, encode_update(gone)]) == found[1:]


def test_damaged_values_end_in_our_own_error() -> None:
    """Whatever the bytes: a reading, or an error that says where."""
    chance = random.Random(3)
    refused = 0
    for _ in range(3000):
        try:
            decode_value(damaged(chance.choice(topic_values()), chance))
        except MetadataRecordError:
            refused += 1
    assert refused > 300


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 2), ("state", "LOST"), ("end_offset", -5), ("topic_id", "short"),
        ("leader_epochs", [[1]]), ("objects", {".exe": {}}), ("custom_metadata", "!"),
        ("size_bytes", None),
    ],
)  # fmt: skip
def test_a_manifest_with_a_bad_field_is_refused(field: str, value: object) -> None:
    """It is refused by its name, whatever is wrong in it."""
    said = decode_value(topic_values()[0])
    assert isinstance(said, SegmentMetadata)
    content = json.loads(said.to_json())
    content[field] = value
    with pytest.raises(CorruptFileError) as caught:
        SegmentMetadata.from_json(json.dumps(content).encode(), "m/1.json")
    assert caught.value.path == "m/1.json"


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "\ufffd"])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    """So is anything else."""
    with pytest.raises(CorruptFileError):
        SegmentMetadata.from_json(text.encode(), "m/1.json")


@given(partition=PARTITIONS, uuid=st.binary(min_size=16, max_size=16), start=st.integers(0, 2**63))
def test_names_come_back(partition: RemotePartition, uuid: bytes, start: int) -> None:
    """Directory and file names say what they were made of."""
    assert parse_directory(partition.directory_name) == partition
    for kind in ObjectKind:
        name = SegmentId(start, uuid).stem + kind.value
        assert parse_object(name) == (SegmentId(start, uuid), kind)


@pytest.mark.parametrize(
    "name",
    ["00000000000000000000.log", "00000000000000000000-hiUS4pi-QOSeMGZotiiymQ.json",
     "1-hiUS4pi-QOSeMGZotiiymQ.log", "00000000000000000000-hiUS4pi.log"],
)  # fmt: skip
def test_other_names_are_none_of_ours(name: str) -> None:
    """Files of other kinds are passed over."""
    assert parse_object(name) is None
    assert parse_directory(name) is None
