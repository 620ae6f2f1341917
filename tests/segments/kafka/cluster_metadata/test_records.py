"""Metadata records, against the bytes that real controllers wrote."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.cluster_metadata.access_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    RemoveAccessControlEntryRecord,
)
from logstore.segments.kafka.cluster_metadata.records import (
    KINDS,
    AnyRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnknownRecordVersionError,
    UserScramCredentialRecord,
    decode_record,
    encode_record,
)
from logstore.segments.kafka.cluster_metadata.token_records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from logstore.segments.kafka.cluster_metadata.wire import WireError
from logstore.segments.kafka.record import decode_records

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
SETS = ("kafka-4.3", "kafka-3.9", "epochs-4.3")
TOPIC_ID = bytes(range(16))


def golden_values(name: str) -> Iterator[bytes]:
    """Yield the value of every metadata record of a golden set's log."""
    (path,) = (GOLDEN / name / "data" / "__cluster_metadata-0").glob("*.log")
    file = SystemFileSystem().open(str(path), writable=False)
    with contextlib.closing(file):
        for batch in walk_batches(file, str(path)):
            if not batch.is_control:
                for record in decode_records(batch.data):
                    assert record.value is not None
                    yield record.value


@pytest.mark.parametrize("name", SETS)
def test_every_record_of_a_real_log_comes_back_byte_for_byte(name: str) -> None:
    """What is understood is written as the real controller wrote it; the rest is kept whole."""
    kinds: set[type[AnyRecord]] = set()
    for value in golden_values(name):
        record, version = decode_record(value)
        kinds.add(type(record))
        if isinstance(record, OtherRecord):
            assert record.value == value
            assert record.api_key in {21, 27, 28}  # ZkMigration, RegisterController, ClearElr
        else:
            assert encode_record(record, version) == value
    assert {
        TopicRecord,
        PartitionRecord,
        PartitionChangeRecord,
        ConfigRecord,
        FeatureLevelRecord,
        ProducerIdsRecord,
        RegisterBrokerRecord,
        BrokerRegistrationChangeRecord,
        NoOpRecord,
        OtherRecord,
    } <= kinds


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("010c00116d657461646174612e76657273696f6e001e00",
         FeatureLevelRecord("metadata.version", 30)),
        ("01140000", NoOpRecord()),
        ("0102000274" + TOPIC_ID.hex() + "00",
         TopicRecord("t", TOPIC_ID)),
        ("0104000202740261026200", ConfigRecord(2, "t", "a", "b")),
        ("01040002027402610000", ConfigRecord(2, "t", "a", None)),
        ("010b0006616c6963650103aabb02cc010000100000",
         UserScramCredentialRecord("alice", 1, b"\xaa\xbb", b"\xcc", b"", 4096)),
        ("01160006616c6963650200", RemoveUserScramCredentialRecord("alice", 2)),
        ("011200" + TOPIC_ID.hex() + "02027403" + "07557365723a61" + "022a" + "030300",
         AccessControlEntryRecord(TOPIC_ID, 2, "t", 3, "User:a", "*", 3, 3)),
        ("011300" + TOPIC_ID.hex() + "00",
         RemoveAccessControlEntryRecord(TOPIC_ID)),
        ("010e00" + "02" + "0575736572" + "00" + "00" + "0261" + "3ff8000000000000" + "0000",
         ClientQuotaRecord((("user", None),), "a", 1.5)),
        ("010a00" + "07557365723a61" * 2 + "02" + "07557365723a62" + "0000000000000001"
         + "0000000000000003" + "0000000000000002" + "0374" + "69" + "00",
         DelegationTokenRecord("User:a", "User:a", ("User:b",), 1, 3, 2, "ti")),
        ("011a00" + "03746900", RemoveDelegationTokenRecord("ti")),
    ],
)  # fmt: skip
def test_worked_examples(text: str, record: AnyRecord) -> None:
    """Frame version, kind and version, then the fields and how many tagged ones follow."""
    assert decode_record(bytes.fromhex(text)) == (record, 0)
    assert not isinstance(record, OtherRecord)
    assert encode_record(record).hex() == text


def test_what_stays_is_left_out() -> None:
    """A change says only what changes; in older versions the newer fields are not there."""
    change = PartitionChangeRecord(3, TOPIC_ID, leader=-1, directories=(bytes(16),))
    for version, has_directories in ((0, False), (1, True), (2, True)):
        found, _ = decode_record(encode_record(change, version))
        assert found == (change if has_directories else attrs.evolve(change, directories=None))
    plain = encode_record(PartitionChangeRecord(3, TOPIC_ID), 2)
    assert plain == bytes.fromhex("01050200000003") + TOPIC_ID + b"\x00"


def test_unknown_tags_are_skipped() -> None:
    """A field that a newer Kafka has added as a tagged one does not hinder."""
    value = encode_record(TopicRecord("t", TOPIC_ID))[:-1] + bytes.fromhex("0163 02 abcd")
    assert decode_record(value) == (TopicRecord("t", TOPIC_ID), 0)


def test_kinds_that_are_not_looked_into() -> None:
    """Controllers and the like come back whole."""
    value = bytes.fromhex("011b00abcdef")
    assert decode_record(value) == (OtherRecord(27, 0, value), 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "frame is cut short"),
        ("01", "frame is cut short"),
        ("020c00", "frame version 2"),
        ("010200", "cut short"),
        ("01020000", "must not be null"),
        ("010200027f", "run out"),
        ("0102000274" + "00" * 15, "run out"),
        ("0102000274" + "00" * 18, "1 bytes follow"),
        ("01020002ff" + "00" * 17, "damaged"),
        ("0103000000000100000000000000000000000000000000ff7f", "elements in"),
    ],
)
def test_what_is_no_record(text: str, reason: str) -> None:
    """Bytes that end early, go on or break a rule are refused with the reason."""
    with pytest.raises(WireError, match=reason):
        decode_record(bytes.fromhex(text))


def test_a_newer_version_is_refused() -> None:
    """What a future version adds cannot be guessed, so nobody tries."""
    with pytest.raises(UnknownRecordVersionError, match="PartitionRecord of version 3"):
        decode_record(bytes.fromhex("010303"))


@given(st.binary(max_size=40))
def test_fuzz(body: bytes) -> None:
    """Any bytes give a record, or WireError."""
    for key, kind in KINDS.items():
        with contextlib.suppress(WireError):
            decode_record(bytes((1, key, kind.VERSION_MAX)) + body)
    with contextlib.suppress(WireError):
        decode_record(body)


def test_fields_are_those_of_the_classes() -> None:
    """Every kind has an attribute for every field that stands on the wire, and no other."""
    for kind in KINDS.values():
        names = {field.name for field in kind.FIELDS}
        assert names == set(inspect.signature(kind).parameters), kind.__name__


def test_the_docstring_tells_the_truth() -> None:
    """The example in the module's text is a record."""
    import logstore.segments.kafka.cluster_metadata.records as module

    found = re.search(r"^    01 0c 00  11 metadata.version 00 1e  00", module.__doc__ or "", re.M)
    assert found is not None
    expected = bytes.fromhex("010c0011") + b"metadata.version" + bytes.fromhex("001e00")
    assert encode_record(FeatureLevelRecord("metadata.version", 30)) == expected


def test_a_transaction_may_have_a_name() -> None:
    """The name of a transaction is optional."""
    for record in (BeginTransactionRecord(), BeginTransactionRecord("Bootstrap records")):
        assert decode_record(encode_record(record)) == (record, 0)
