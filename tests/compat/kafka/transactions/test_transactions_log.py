"""The records of ``__transaction_state``: those of real brokers, read, written again, continued."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.transactions.ending import End
from logstore.compat.kafka.transactions.topic import TransactionsTopic
from logstore.compat.kafka.transactions.transaction import Transaction
from logstore.compat.kafka.transactions.transactions_log import (
    TransactionRecordError,
    decode_record,
    encode_key,
    encode_record,
)
from logstore.os_host import system_host
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus

OPEN_AT = {"txn-librdkafka": (3, 0, 146), "txn-java": (4, 6, 160)}


def golden_broker(golden: Path, directory: Path, set_name: str) -> Broker:
    """Return a broker over a copy of what a real broker left."""
    data = directory / "data"
    shutil.copytree(golden / set_name / "data", data)
    return Broker.open(system_host(), str(data), {})


@pytest.mark.parametrize(("set_name", "level"), [("transactions-4.3", 2), ("kafka-3.9", 0)])
def test_a_real_brokers_records_are_written_again_byte_for_byte(
    golden: Path, tmp_path: Path, set_name: str, level: int
) -> None:
    """Every record that a broker of 4.3 or 3.9 wrote comes out as it was."""
    broker = golden_broker(golden, tmp_path, set_name)
    records = list(TransactionsTopic(broker).replay())
    assert len(records) >= 3
    for record in records:
        decoded = decode_record(record)
        assert decoded is not None
        _, transaction = decoded
        assert transaction is not None
        assert encode_record(transaction, level) == record
    broker.abandon()


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_real_brokers_open_transactions_are_continued(
    golden: Path, tmp_path: Path, is_commit: bool
) -> None:
    """Two that were open at its stop end here, one of version 1 and one of version 2."""
    broker = golden_broker(golden, tmp_path, "transactions-4.3")
    log = broker.topics["transactions"].partitions[0]
    before = log.end_offset
    assert log.last_stable_offset == 146
    for count, (name, (producer_id, epoch, first)) in enumerate(OPEN_AT.items(), 1):
        (found, *_) = log.producers.open_transactions()
        assert (found.producer_id, found.epoch, found.first_offset) == (producer_id, epoch, first)
        version = 2 if name == "txn-java" else 0
        ended = broker.transactions.end(End(name, producer_id, epoch, is_commit, version))
        assert ended.error_code is ErrorCode.NONE
        error, transaction = broker.transactions.describe(name)
        assert (error, transaction is None) == (ErrorCode.NONE, False)
        assert transaction is not None
        assert transaction.state.java_name == ("CompleteCommit" if is_commit else "CompleteAbort")
        assert transaction.producer_epoch == (7 if version else 0)
        assert log.end_offset == before + count
    assert log.last_stable_offset == log.end_offset
    began_at = {producer_id: first for producer_id, _, first in OPEN_AT.values()}
    read = {
        batch.producer_id
        for batch in log.committed_batches(146)
        if not batch.is_control and batch.base_offset >= began_at.get(batch.producer_id, before)
    }
    assert read == ({3, 4} if is_commit else set())
    broker.close()
    again = Broker.open(system_host(), str(tmp_path / "data"), {})
    states = {one.transactional_id: one.state for one in again.transactions.list_transactions()[1]}
    assert TransactionStatus.ONGOING not in states.values()
    assert len(states) == 4
    again.abandon()


def test_a_new_producer_of_an_id_goes_on_where_a_real_broker_left_off(
    golden: Path, tmp_path: Path
) -> None:
    """Whoever begins with it gets the same producer id and an epoch above all before."""
    from logstore.compat.kafka.transactions.initialising import Initialising

    broker = golden_broker(golden, tmp_path, "transactions-4.3")
    wanted = Initialising("compacting", 60_000)
    given = broker.transactions.init_producer_id(wanted)
    assert (given.error_code, given.producer_id, given.producer_epoch) == (ErrorCode.NONE, 2, 3)
    wanted = Initialising("txn-java", 60_000)
    assert broker.transactions.init_producer_id(wanted).error_code is (
        ErrorCode.CONCURRENT_TRANSACTIONS
    )
    given = broker.transactions.init_producer_id(wanted)
    assert (given.error_code, given.producer_id, given.producer_epoch) == (ErrorCode.NONE, 4, 8)
    broker.abandon()


def a_transaction(state: TransactionStatus) -> Transaction:
    """Return a transaction with all its fields set."""
    is_empty = state is TransactionStatus.EMPTY
    partitions = frozenset(() if is_empty else (("b", 1), ("a", 2), ("a", 0)))
    return Transaction(
        transactional_id="x", producer_id=1, timeout_ms=2, last_update_ms=3, producer_epoch=4,
        state=state, previous_producer_id=5, next_producer_id=6, partitions=partitions,
        start_ms=7, client_transaction_version=2,
    )  # fmt: skip


def test_partitions_stand_in_the_order_of_javas_maps() -> None:
    """As a 4.3.1 has written them: the group's partition was taken in last, and others first."""
    transaction = attrs.evolve(
        a_transaction(TransactionStatus.ONGOING),
        partitions=frozenset((("__consumer_offsets", 1), ("s3-e", 0))),
    )
    _, value = encode_record(transaction, 2)
    assert value is not None
    assert b"\x03\x05s3-e\x02\0\0\0\0\0\x13__consumer_offsets\x02\0\0\0\1\0" in value


@pytest.mark.parametrize("state", [one for one in TransactionStatus if one.name != "DEAD"])
def test_a_record_holds_everything(state: TransactionStatus) -> None:
    """Version 1 holds all but the last epoch; version 0 not what came with transactions 2."""
    transaction = a_transaction(state)
    assert decode_record(encode_record(transaction, 2)) == ("x", transaction)
    old = decode_record(encode_record(transaction, 0))
    assert old is not None
    assert old[1] is not None
    assert (old[1].previous_producer_id, old[1].next_producer_id) == (-1, -1)
    assert (old[1].client_transaction_version, old[1].partitions) == (0, transaction.partitions)


def test_an_id_that_is_no_text_is_read_as_java_reads_it() -> None:
    """It can be told again, in every answer."""
    found = decode_record((encode_key("pay").replace(b"pay", b"p\xffy"), None))
    assert found == ("p\ufffdy", None)


def test_a_tombstone_is_read() -> None:
    """The id, and that there is nothing more to know of it."""
    assert decode_record((encode_key("x"), None)) == ("x", None)


@pytest.mark.parametrize("cut", range(1, 30, 3))
def test_a_record_that_is_cut_is_told(cut: int) -> None:
    """Neither half a transaction nor a crash: an error that names the topic."""
    key, value = encode_record(a_transaction(TransactionStatus.ONGOING), 2)
    assert value is not None
    with pytest.raises(TransactionRecordError, match="__transaction_state"):
        decode_record((key, value[:-cut]))


def test_a_state_that_does_not_exist_is_told() -> None:
    """The number of the state is looked at."""
    key, value = encode_record(a_transaction(TransactionStatus.EMPTY), 0)
    assert value is not None
    state_position = 2 + 8 + 2 + 4
    broken = value[:state_position] + b"\x63" + value[state_position + 1 :]
    with pytest.raises(TransactionRecordError):
        decode_record((key, broken))
