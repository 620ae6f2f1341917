"""
A partition against a list of batches: whatever happens to it, it holds what the list holds.

The machine appends, in transactions too, commits and aborts, reads, rolls, truncates, deletes and
retains, flushes, stops cleanly, dies and loses power, on a simulated disk, in any order. After each
step the log must read as the list does, with and without what was aborted; after a power loss it
may have lost what was never flushed, and nothing else.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from logstore.errors import OffsetOutOfRangeError, WriteFailedError
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import PowerLoss, SimulatedHost
from tests.segments.kafka.stored_batch import StoredBatch, is_abort, written_end

pytestmark = pytest.mark.timeout(900)  # of a long run; the usual one takes seconds

DIRECTORY = "/data/t-0"
START_MS = 1_700_000_000_000
#: the producers that write in transactions
TRANSACTIONAL = (20, 21, 22)
CONFIG = LogConfig(
    segment_bytes=700,
    index_interval_bytes=150,
    segment_index_bytes=60,
    segment_ms=60_000,
    retention_bytes=1500,
    retention_ms=-1,
    file_delete_delay_ms=0,
    message_timestamp_after_max_ms=2**62,
)


class PartitionMachine(RuleBasedStateMachine):
    """`batches` is the list; `end` may lie above its last batch after a truncation."""

    def __init__(self) -> None:
        super().__init__()
        self.host = SimulatedHost(seed=1)
        self.host.fs.make_directory(DIRECTORY)
        self.host.fs.sync_directory("/data")
        self.host.fs.sync_directory("/")
        self.batches: list[StoredBatch] = []
        self.start = 0
        self.end = 0
        self.durable = 0
        self.checkpoint = 0  # recovery point and log start as the store's checkpoints have them
        self.start_checkpoint = 0
        self.partition = self.open()

    def open(self, recovery_point: int | None = None) -> KafkaPartition:
        """Open the partition; `recovery_point` after an unclean stop."""
        files = SegmentFiles(self.host, DIRECTORY, CONFIG, is_clean=recovery_point is None)
        return KafkaPartition(
            self.host,
            files,
            "t",
            0,
            recovery_point=recovery_point,
            log_start_offset=self.start_checkpoint,
        )

    # writing

    @initialize()
    def lead(self) -> None:
        """A leader is elected, and the new directory made durable, as a store does it."""
        self.partition.become_leader(0)
        self.partition.flush()

    @rule(
        sizes=st.lists(st.integers(0, 60), min_size=1, max_size=5),
        delay_ms=st.integers(-500, 30_000),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP]),
        producer_id=st.sampled_from([-1, -1, 7, 8]),
    )
    def append(self, sizes: list[int], delay_ms: int, codec: Codec, producer_id: int) -> None:
        """A producer's batch goes to the end, with the offsets that come next."""
        data = self.produced(sizes, delay_ms, codec, producer_id)
        appended = self.partition.append_produced(memoryview(bytearray(data)), START_MS)
        assert (appended.base_offset, appended.is_duplicate) == (self.end, False)
        self.expect(data)
        assert appended.last_offset == self.end - 1

    @rule(sizes=st.lists(st.integers(0, 60), min_size=1, max_size=4), free=st.integers(0, 400))
    def append_on_a_full_disk(self, sizes: list[int], free: int) -> None:
        """It is appended whole, or refused and nothing of it remains."""
        data = self.produced(sizes, 0, Codec.NONE, -1)
        self.host.fs.fill_up(free)
        try:
            self.partition.append_produced(memoryview(bytearray(data)), START_MS)
        except WriteFailedError:
            assert self.partition.end_offset == self.end
        else:
            self.expect(data)
        finally:
            self.host.fs.faults.clear()

    @rule(
        sizes=st.lists(st.integers(0, 60), min_size=1, max_size=4),
        producer_id=st.sampled_from(TRANSACTIONAL),
    )
    def append_in_a_transaction(self, sizes: list[int], producer_id: int) -> None:
        """It starts with the first batch after a marker, or ever."""
        data = self.produced(sizes, 0, Codec.NONE, producer_id, is_transactional=True)
        appended = self.partition.append_produced(memoryview(bytearray(data)), START_MS)
        assert (appended.base_offset, appended.is_duplicate) == (self.end, False)
        self.expect(data)

    @rule(producer_id=st.sampled_from(TRANSACTIONAL), is_commit=st.booleans())
    def end_a_transaction(self, producer_id: int, is_commit: bool) -> None:
        """A marker goes to the end, also where no transaction is open."""
        now_ms = START_MS + len(self.batches) * 1000
        offset = self.partition.append_marker(
            producer_id, 0, is_commit=is_commit, coordinator_epoch=0, now_ms=now_ms
        )
        assert offset == self.end
        marker = encode_control(
            ControlType.COMMIT if is_commit else ControlType.ABORT,
            timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
        )
        self.expect(bytes(marker))

    def produced(
        self,
        sizes: list[int],
        delay_ms: int,
        codec: Codec,
        producer_id: int,
        *,
        is_transactional: bool = False,
    ) -> bytes:
        """Return a batch as a client sends it."""
        timestamp_ms = START_MS + len(self.batches) * 1000 + delay_ms
        records = [
            Record(offset=index, timestamp_ms=timestamp_ms + index, value=b"v" * size)
            for index, size in enumerate(sizes)
        ]
        sequence = -1
        if producer_id >= 0:
            known = self.partition.producers.get(producer_id)
            sequence = 0 if known is None else known.last_sequence + 1
        return bytes(
            encode_batch(
                records,
                codec=codec,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=sequence,
                is_transactional=is_transactional,
            )
        )

    def expect(self, produced: bytes) -> None:
        """Add a batch to the list, stamped as a leader stamps it."""
        data = bytearray(produced)
        struct.pack_into(">q", data, 0, self.end)
        struct.pack_into(">i", data, 12, self.partition.leader_epoch)
        self.batches.append(StoredBatch(bytes(data)))
        self.end = self.batches[-1].header.next_offset

    @rule()
    def roll(self) -> None:
        """A new segment changes nothing that can be read."""
        self.partition.log.roll()

    @precondition(lambda self: self.end > 0)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """What reaches to an offset or above is gone; the log goes on there."""
        offset = data.draw(st.integers(max(0, self.start - 2), self.end + 1), label="offset")
        self.partition.truncate(offset)
        if offset < self.end:
            first = self.partition.log.start_offset
            self.batches = [b for b in self.batches if b.header.next_offset <= offset]
            if not self.batches or first == offset:
                self.batches = [b for b in self.batches if b.header.base_offset >= first]
            self.end = offset
            self.start = min(self.start, offset)
            self.durable = min(self.durable, offset)
        self.write_checkpoints()  # as Kafka does after a truncation

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        """The log start moves up; nothing below it can be read."""
        offset = data.draw(st.integers(self.start, self.end), label="offset")
        assert self.partition.delete_records(offset) == max(self.start, offset)
        self.start = max(self.start, offset)

    @rule()
    def retain(self) -> None:
        """The oldest segments go while what remains without them is large enough."""
        sizes = [
            (segment.base_offset, segment.end_position)
            for segment in self.partition.log.segments.values()
        ]
        bases = [base for base, _ in sizes]
        gone = 0
        while gone + 1 < len(bases) and bases[gone + 1] <= self.start:
            gone += 1
        total = sum(size for _, size in sizes[gone:])
        while (
            gone < len(sizes)
            and total - CONFIG.retention_bytes >= sizes[gone][1]
            and not (gone == len(sizes) - 1 and sizes[gone][1] == 0)
        ):
            total -= sizes[gone][1]
            gone += 1
        assert self.partition.retain() == gone
        if gone:
            first = bases[gone] if gone < len(bases) else self.end
            self.start = max(self.start, first)
        self.host.clock.advance(1)
        self.partition.files.purge()

    @rule()
    def flush(self) -> None:
        """Everything appended so far is durable from now on."""
        self.partition.flush()
        self.durable = self.end
        assert self.partition.log.recovery_point == self.end

    @rule()
    def write_checkpoints(self) -> None:
        """The store notes recovery point and log start from time to time."""
        self.checkpoint = self.partition.log.recovery_point
        self.start_checkpoint = self.partition.start_offset

    # stopping

    def ends_below_its_start(self, start_offset: int) -> bool:
        """
        Tell whether all that is left stands below the log start that is noted, or will be.

        A truncation to the log start leaves that where it is inside a batch, which goes as a whole.
        Who opens such a log begins anew at its start, as Kafka does.
        """
        return written_end(self.host, self.partition) < start_offset

    @precondition(lambda self: not self.ends_below_its_start(self.partition.start_offset))
    @rule()
    def stop_cleanly(self) -> None:
        """After a clean stop all is there, and nothing had to be recovered."""
        self.partition.close()
        self.durable = self.end
        self.write_checkpoints()
        self.partition = self.open()
        assert self.partition.recovery is None
        self.take_over()

    @rule()
    def die(self) -> None:
        """The process vanishes: all that was written is there, checked and not cut."""
        begins_anew = self.ends_below_its_start(self.start_checkpoint)
        size_bytes = self.partition.log.size_bytes
        self.host.fs.process_death()
        self.recover(self.end)
        recovery = self.partition.recovery
        assert recovery is not None
        assert recovery.is_clean or begins_anew
        assert recovery.dropped_bytes == (size_bytes if begins_anew else 0)

    @precondition(lambda self: not self.ends_below_its_start(self.start_checkpoint))
    @rule(tail=st.binary(min_size=1, max_size=200))
    def die_with_a_torn_tail(self, tail: bytes) -> None:
        """What a half write left at the end is cut, kept aside, and reported."""
        active = self.partition.log.active
        path, size_bytes = active.path, active.end_position
        self.host.fs.process_death()
        file = self.host.fs.open(path, create=True)
        file.write(file.size(), tail)
        file.close()
        self.recover(self.end)
        recovery = self.partition.recovery
        assert recovery is not None
        assert recovery.dropped_bytes == len(tail)
        assert recovery.reason
        assert f"position {size_bytes}" in recovery.reason
        if any(tail):
            (kept,) = recovery.kept_aside
            file = self.host.fs.open(kept, writable=False)
            assert file.read(0, file.size()) == tail
            self.host.fs.remove(kept)

    @rule(loss=st.integers(0, 2**16).map(PowerLoss.random) | st.just(PowerLoss()))
    def lose_power(self, loss: PowerLoss) -> None:
        """What was flushed is there; of the rest whole batches, or nothing."""
        self.host.power_loss(loss)
        self.recover(self.durable)

    def recover(self, kept_offset: int) -> None:
        """Open after a crash that must keep every batch below `kept_offset`."""
        self.partition = self.open(self.checkpoint)
        found = {bytes(batch.data) for batch in self.partition.batches()}
        survivors = [batch for batch in self.batches if batch.data in found]
        lost = [batch for batch in self.readable() if batch.data not in found]
        assert [b for b in lost if b.header.next_offset <= kept_offset] == []
        self.batches = survivors
        self.take_over()
        self.partition.flush()
        self.durable = self.end
        self.write_checkpoints()

    def take_over(self) -> None:
        """
        Take over where the opened log starts and ends.

        An end without a batch behind it (after a truncation) is forgotten at a stop. A log start
        that no checkpoint has yet is, too; what was deleted may then be back.
        """
        start, end = self.partition.start_offset, self.partition.end_offset
        last = self.batches[-1].header.next_offset if self.batches else 0
        assert last <= end <= self.end
        assert self.start_checkpoint <= start <= max(self.start, last, end)
        self.start, self.end = start, end
        self.durable = min(self.durable, end)

    # what must always hold

    def readable(self) -> list[StoredBatch]:
        """Return the batches of the list that reach above the log start."""
        return [batch for batch in self.batches if batch.header.next_offset > self.start]

    @invariant()
    def offsets_agree(self) -> None:
        """Start, end and recovery point are where the list has them."""
        assert (self.partition.start_offset, self.partition.end_offset) == (self.start, self.end)
        log = self.partition.log
        assert log.start_offset <= log.recovery_point <= log.next_offset
        assert log.recovery_point <= max(self.durable, log.start_offset)

    @invariant()
    def batches_agree(self) -> None:
        """Every readable batch is in the log, in order, byte for byte."""
        found = [bytes(batch.data) for batch in self.partition.batches()]
        assert found == [batch.data for batch in self.readable()]

    # transactions, as the list has them

    def fates(self) -> list[bool | None]:
        """Return of each readable batch: aborted, not aborted, or (None) not decided yet."""
        fates: list[bool | None] = []
        decided: dict[int, bool] = {}
        for batch in reversed(self.readable()):
            header = batch.header
            if header.is_control:
                decided[header.producer_id] = is_abort(batch)
            is_open = header.is_transactional and header.producer_id not in decided
            is_data = header.is_transactional and not header.is_control
            fates.append(None if is_open else is_data and decided[header.producer_id])
        return fates[::-1]

    @invariant()
    def the_stable_part_ends_where_something_is_open(self) -> None:
        """
        At the first batch that no marker has decided on yet.

        Or at the log start, if that transaction has data below it; that a crash may forget.
        """
        pairs = zip(self.readable(), self.fates(), strict=True)
        undecided = [batch.header.base_offset for batch, fate in pairs if fate is None]
        stable = self.partition.last_stable_offset
        expected = max(undecided[0], self.start) if undecided else self.end
        assert stable == expected or (
            stable == self.start and self.partition.producers.open_transactions()
        )
        for transaction in self.partition.producers.open_transactions():
            assert transaction.producer_id in TRANSACTIONAL
            assert stable <= max(transaction.first_offset, self.start)

    @invariant()
    def committed_records_agree(self) -> None:
        """A read_committed reader gets all that is decided, but for what was aborted."""
        stable = self.partition.last_stable_offset
        pairs = zip(self.readable(), self.fates(), strict=True)
        expected = [
            batch.data for batch, fate in pairs if batch.header.next_offset <= stable and not fate
        ]
        found = [bytes(batch.data) for batch in self.partition.committed_batches()]
        assert found == expected

    @invariant()
    def the_transaction_indexes_agree(self) -> None:
        """They name every ABORT marker that has data in the log, and no other marker."""
        markers = {
            batch.header.base_offset
            for batch in self.readable()
            if batch.header.is_control and is_abort(batch)
        }
        needed: set[int] = set()
        pending: set[int] = set()
        for batch in self.readable():
            header = batch.header
            if header.is_transactional and not header.is_control:
                pending.add(header.producer_id)
            elif header.is_control and header.producer_id in pending:
                pending.remove(header.producer_id)
                needed |= {header.base_offset} & markers
        aborted = self.partition.aborted_transactions(self.start, self.end)
        found = {entry.last_offset for entry in aborted}
        assert needed <= found
        assert found <= markers

    @rule(data=st.data(), size_bytes_max=st.integers(1, 2000))
    def read_committed(self, data: st.DataObject, size_bytes_max: int) -> None:
        """Stored bytes up to the stable end, and with them which of their transactions to skip."""
        offset = data.draw(st.integers(self.start, self.end), label="offset")
        stable = self.partition.last_stable_offset
        fetched = self.partition.read_committed(offset, size_bytes_max)
        found = b"" if fetched.extent is None else fetched.extent.read()
        wanted = [
            (batch, fate)
            for batch, fate in zip(self.readable(), self.fates(), strict=True)
            if batch.header.last_offset >= offset and batch.header.next_offset <= stable
        ]
        assert b"".join(batch.data for batch, _ in wanted).startswith(found)
        assert bool(found) == (bool(wanted) and offset < stable)
        spans = [(a.producer_id, a.first_offset, a.last_offset) for a in fetched.aborted]
        position = 0
        for batch, fate in wanted:
            position += len(batch.data)
            if position > len(found):
                break
            at, producer_id = batch.header.base_offset, batch.header.producer_id
            is_named = any(p == producer_id and f <= at < last for p, f, last in spans)
            assert is_named == bool(fate)

    @rule(data=st.data(), size_bytes_max=st.integers(1, 2000), is_first_whole=st.booleans())
    def read(self, data: st.DataObject, size_bytes_max: int, is_first_whole: bool) -> None:
        """A read returns bytes from the batch that holds the offset on, whole if so asked."""
        offset = data.draw(st.integers(self.start, self.end), label="offset")
        extent = self.partition.read(offset, size_bytes_max, is_first_whole=is_first_whole)
        rest = [b.data for b in self.batches if b.header.last_offset >= offset]
        found = b"" if extent is None else extent.read()
        assert b"".join(rest).startswith(found)
        assert len(found) <= max(size_bytes_max, len(rest[0]) if rest and is_first_whole else 0)
        if rest and is_first_whole:
            assert len(found) >= len(rest[0])

    @rule(data=st.data())
    def read_outside(self, data: st.DataObject) -> None:
        """Below the log start and above the log end nothing can be read."""
        outside = st.just(self.end + 1)
        if self.start > 0:
            outside |= st.integers(0, self.start - 1)
        offset = data.draw(outside, label="offset")
        with pytest.raises(OffsetOutOfRangeError):
            self.partition.read(offset, 100)

    @rule(data=st.data(), count_max=st.integers(1, 10))
    def read_records(self, data: st.DataObject, count_max: int) -> None:
        """Records come in order from an offset on, none left out."""
        offset = data.draw(st.integers(self.start, self.end), label="offset")
        wanted = [record for record in self.records() if record.offset >= offset][:count_max]
        found = self.partition.read_records(offset, count_max)
        assert [(r.offset, r.timestamp_ms, r.value) for r in found] == [
            (r.offset, r.timestamp_ms, r.value) for r in wanted
        ]

    @rule(data=st.data())
    def find_time(self, data: st.DataObject) -> None:
        """The first record at least that young is the one that a walk over the list finds."""
        stamps = [record.timestamp_ms for record in self.records(with_markers=True)] or [START_MS]
        asked = data.draw(st.sampled_from(stamps), label="timestamp") + data.draw(
            st.integers(-1, 1), label="delta"
        )
        wanted = next(
            (r.offset for r in self.records(with_markers=True) if r.timestamp_ms >= asked), None
        )
        assert self.partition.offset_for_timestamp(asked) == wanted

    def records(self, *, with_markers: bool = False) -> list[Record]:
        """Return the readable records of the list; times are found in markers, too, as in Kafka."""
        return [
            record
            for batch in self.readable()
            if with_markers or not batch.header.is_control
            for record in decode_records(batch.data)
            if record.offset >= self.start
        ]


TestPartition = PartitionMachine.TestCase
TestPartition.settings = settings(stateful_step_count=30, report_multiple_bugs=False)
