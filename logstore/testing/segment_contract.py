"""
The laws of every log, whatever its layout: append, locate, read, roll, truncate, retain, flush.

::

    class TestMyLog(SegmentContract, RecoveryContract):
        \"\"\"My layout keeps the laws of a log.\"\"\"

        layout = MyLogUnderTest()  # see logstore.testing.witnessed_log.LogUnderTest

pytest collects the laws; without pytest, call the methods. What must hold across power losses and
damage is in :mod:`logstore.testing.recovery_contract`. For readable failures call
``pytest.register_assert_rewrite("logstore.testing.segment_contract")`` in a ``conftest.py``.
"""

from __future__ import annotations

import errno

from logstore.errors import (
    LogStoreError,
    OffsetMismatchError,
    OffsetOutOfRangeError,
    WriteFailedError,
)
from logstore.retention import RetentionPolicy
from logstore.testing.simulated_host import SimulatedHost
from logstore.testing.witnessed_log import (
    LogContract,
    StoredEntry,
    WitnessedLog,
    check_invariants,
    expect,
    stored,
)

EVERYTHING_BYTES = 1 << 30


class SegmentContract(LogContract):
    """What a log does while nothing goes wrong (but a full disk, which is no accident)."""

    def opened(self, segments: int = 0) -> WitnessedLog:
        """Return a new log with so many segments more than the first."""
        witnessed = WitnessedLog(self.layout, SimulatedHost())
        if segments:
            witnessed.append_segments(segments)
            witnessed.append(2)
        return witnessed

    def test_a_new_log_is_empty(self) -> None:
        """It starts at 0, holds nothing, and reading its end gives nothing."""
        log = self.opened().log
        check_invariants(log)
        assert (log.start_offset, log.next_offset, log.size_bytes) == (0, 0, 0)
        assert stored(log) == []
        assert log.read(0, EVERYTHING_BYTES).read() == b""

    def test_entries_come_back_as_they_went_in(self) -> None:
        """What was appended is there in order, with its offsets and byte for byte."""
        witnessed = self.opened(segments=3)
        check_invariants(witnessed.log)
        assert stored(witnessed.log) == witnessed.testimony.entries
        assert witnessed.log.next_offset == witnessed.testimony.entries[-1].next_offset

    def test_appends_say_where_the_entry_stands(self) -> None:
        """The position returned is where `decode` finds the entry and `locate` leads to."""
        witnessed = self.opened(segments=1)
        log, draft = witnessed.log, self.layout.draft(1000)
        start = log.reserve(draft)
        assert start == log.next_offset
        entry = draft.stamped(start)
        assert (entry.base_offset, entry.next_offset) == (start, start + draft.offset_count)
        assert entry.size_bytes == draft.size_bytes
        expected = StoredEntry.of(entry)
        position = log.append(entry)
        assert StoredEntry.of(log.active.decode(position)) == expected
        assert log.active.locate(start) == position

    def test_an_entry_must_start_where_the_log_ends(self) -> None:
        """One that starts below, or above where no hole may be, is refused and changes nothing."""
        witnessed = self.opened(segments=1)
        log = witnessed.log
        before = stored(log), log.next_offset, log.active.end_position
        wrong = [log.active.base_offset, log.next_offset - 1]
        if not log.active.may_skip_offsets:
            wrong += [log.next_offset + 1, log.next_offset + 1000]
        for offset in wrong:
            entry = self.layout.draft(1000).stamped(offset)
            expect(OffsetMismatchError, log.append, entry)
            assert (stored(log), log.next_offset, log.active.end_position) == before

    def test_every_offset_leads_to_its_entry(self) -> None:
        """Reading an offset gives bytes that start with the entry whose span holds it."""
        witnessed = self.opened(segments=2)
        for entry in witnessed.testimony.entries:
            for offset in self.offsets_of(entry):
                extent = witnessed.log.read(offset, len(entry.data))
                assert extent.read() == entry.data, offset
                segment = witnessed.log.find(offset)
                assert segment is not None
                found = segment.decode(segment.locate(offset))
                assert StoredEntry.of(found) == entry

    def offsets_of(self, entry: StoredEntry) -> list[int]:
        """Return the offsets that must lead to the entry."""
        if not self.layout.finds_inner_offsets:
            return [entry.base_offset]
        middle = (entry.base_offset + entry.next_offset) // 2
        return sorted({entry.base_offset, middle, entry.next_offset - 1})

    def test_a_read_stays_within_its_limit(self) -> None:
        """An extent is the run of entries from there on, cut at the limit and at the segment."""
        witnessed = self.opened(segments=2)
        log = witnessed.log
        for segment in log.segments.values():
            run = [e for e in witnessed.testimony.entries if e.base_offset in segment.span]
            rest = b"".join(entry.data for entry in run)
            for entry in run:
                for limit in (0, 1, len(entry.data) + 1, EVERYTHING_BYTES):
                    assert log.read(entry.base_offset, limit).read() == rest[:limit]
                rest = rest[len(entry.data) :]

    def test_reads_outside_of_the_log_are_refused(self) -> None:
        """Below the start and above the end raise; at the end there is nothing yet."""
        witnessed = self.opened(segments=2)
        log = witnessed.log
        assert log.read(log.next_offset, EVERYTHING_BYTES).size_bytes == 0
        expect(OffsetOutOfRangeError, log.read, log.next_offset + 1, EVERYTHING_BYTES)
        expect(OffsetOutOfRangeError, log.read, -1, EVERYTHING_BYTES)

    def test_a_segment_ends_cleanly(self) -> None:
        """At the end of a segment `decode` says None, and the next offset leads there."""
        witnessed = self.opened(segments=2)
        for segment in witnessed.log.segments.values():
            assert segment.locate(segment.next_offset) == segment.end_position
            assert segment.decode(segment.end_position) is None

    def test_rolling_by_hand(self) -> None:
        """`roll` seals the active segment; an empty one is replaced, not left behind."""
        witnessed = self.opened(segments=1)
        log = witnessed.log
        if not self.layout.rolls_by_hand:
            return
        for _ in range(2):
            count, end = len(log.segments), log.next_offset
            log.roll()
            log.roll()
            check_invariants(log)
            assert len(log.segments) == count + 1
            assert log.active.base_offset == log.next_offset
            assert log.next_offset == end or (log.active.may_end_padded and log.next_offset > end)
            witnessed.append(2)
        assert stored(log) == witnessed.testimony.entries

    def test_truncation_at_every_boundary(self) -> None:
        """Exactly the entries below the cut stay, and the log goes on at the cut."""
        whole = self.opened(segments=2)
        ends = [0, *(entry.next_offset for entry in whole.testimony.entries)]
        for offset in ends:
            witnessed = self.opened(segments=2)
            self.check_cut(witnessed, offset)
            witnessed.append_segments(1)
            check_invariants(witnessed.log)
            assert stored(witnessed.log) == witnessed.testimony.entries

    def test_truncation_inside_of_an_entry(self) -> None:
        """Where holes may be, the entry that holds the cut goes, and the log goes on at the cut."""
        whole = self.opened(segments=2)
        if not whole.log.active.may_skip_offsets:
            return
        for entry in whole.testimony.entries:
            for offset in range(entry.base_offset + 1, min(entry.next_offset, 1000)):
                witnessed = self.opened(segments=2)
                self.check_cut(witnessed, offset)
                assert witnessed.append()[0].base_offset == offset
                assert stored(witnessed.log) == witnessed.testimony.entries

    def check_cut(self, witnessed: WitnessedLog, offset: int) -> None:
        """Cut at `offset` and check what is left."""
        log = witnessed.log
        witnessed.truncate(offset)
        check_invariants(log)
        assert log.next_offset == offset
        assert stored(log) == witnessed.testimony.entries
        assert log.read(offset, EVERYTHING_BYTES).size_bytes == 0
        expect(OffsetOutOfRangeError, log.read, offset + 1, 1)

    def test_truncation_above_the_end_changes_nothing(self) -> None:
        """A cut at or above the end leaves all as it was."""
        witnessed = self.opened(segments=1)
        log = witnessed.log
        before = stored(log), log.next_offset
        for offset in (log.next_offset, log.next_offset + 1000):
            log.truncate(offset)
            assert (stored(log), log.next_offset) == before

    def test_a_cut_below_the_start_starts_over(self) -> None:
        """Nothing is left, and the log goes on, empty, below where it started."""
        witnessed = self.opened(segments=3)
        log = witnessed.log
        bases = list(log.segments)
        witnessed.retain(RetentionPolicy(), start_offset=bases[2])
        witnessed.truncate(bases[1])
        check_invariants(log)
        assert (log.start_offset, log.next_offset, stored(log)) == (bases[1], bases[1], [])
        witnessed.append_segments(1)
        assert stored(log) == witnessed.testimony.entries

    def test_retention_by_start_offset(self) -> None:
        """Segments wholly below the start offset go, oldest first; all others stay."""
        count = len(self.opened(segments=3).log.segments)
        for number in range(count):
            witnessed = self.opened(segments=3)
            log = witnessed.log
            bases = list(log.segments)
            witnessed.retain(RetentionPolicy(), start_offset=bases[number])
            self.check_retained(witnessed, bases[number])

    def test_retention_by_size(self) -> None:
        """The oldest segments go as long as enough remains without them."""
        witnessed = self.opened(segments=3)
        log = witnessed.log
        sizes = [segment.end_position for segment in log.segments.values()]
        bases = list(log.segments)
        witnessed.retain(RetentionPolicy(retention_bytes=sum(sizes[2:])))
        self.check_retained(witnessed, bases[2])

    def test_retention_of_everything(self) -> None:
        """A log that gives up all its entries goes on, empty, where the next one would start."""
        witnessed = self.opened(segments=2)
        if not self.layout.rolls_by_hand:
            return
        end = witnessed.log.next_offset
        witnessed.retain(RetentionPolicy(retention_bytes=0))
        if witnessed.log.active.may_end_padded:
            assert witnessed.log.next_offset >= end
            end = witnessed.log.next_offset
        self.check_retained(witnessed, end)
        assert witnessed.log.next_offset == end
        assert witnessed.append()[0].base_offset == end

    def check_retained(self, witnessed: WitnessedLog, start_offset: int) -> None:
        """Check that exactly the entries from `start_offset` on are left."""
        log = witnessed.log
        check_invariants(log)
        assert log.start_offset == start_offset
        expected = [e for e in witnessed.testimony.entries if e.base_offset >= start_offset]
        assert stored(log) == expected
        if start_offset > 0:
            expect(OffsetOutOfRangeError, log.read, start_offset - 1, 1)

    def test_a_flush_moves_the_recovery_point(self) -> None:
        """After a flush all is durable; appends, cuts and removals keep the point in the log."""
        witnessed = self.opened(segments=2)
        log = witnessed.log
        assert log.recovery_point < log.next_offset
        witnessed.flush()
        assert log.recovery_point == log.next_offset
        end = log.next_offset
        witnessed.append()
        assert log.recovery_point == end
        witnessed.truncate(witnessed.testimony.entries[1].next_offset)
        assert log.recovery_point == log.next_offset

    def test_a_flush_beside_appends_promises_what_it_saw(self) -> None:
        """Appends between begin_flush and end_flush are not flushed, not even across a roll."""
        witnessed = self.opened(segments=1)
        log = witnessed.log
        end = log.next_offset
        task = log.begin_flush()
        witnessed.append_segments(1)
        task.run()
        log.end_flush(task)
        check_invariants(log)
        assert log.recovery_point == end
        witnessed.flush()
        assert log.recovery_point == log.next_offset

    def test_a_late_flush_promises_nothing_that_was_cut(self) -> None:
        """A flush that ends after a truncation does not move the point above the log's end."""
        witnessed = self.opened(segments=1)
        task = witnessed.log.begin_flush()
        task.run()
        witnessed.truncate(witnessed.testimony.entries[0].next_offset)
        witnessed.log.end_flush(task)
        check_invariants(witnessed.log)

    def test_a_clean_stop_and_a_start(self) -> None:
        """A log that was stopped cleanly opens with all it had, and goes on."""
        for count in (0, 1, 2, 7):
            host = SimulatedHost()
            witnessed = WitnessedLog(self.layout, host)
            for _ in range(3):
                witnessed.append(count)
                expected = stored(witnessed.log), witnessed.log.span
                witnessed.stop()
                witnessed = WitnessedLog(self.layout, host, witnessed.testimony, was_clean=True)
                check_invariants(witnessed.log)
                assert (stored(witnessed.log), witnessed.log.span) == expected
                assert witnessed.log.recovery_point == witnessed.log.next_offset

    def test_a_refused_write_leaves_no_trace(self) -> None:
        """After ENOSPC, with or without a part written, the log is as before and goes on."""
        for partial_bytes in (0, 1, 15, 10_000):
            host = SimulatedHost()
            witnessed = WitnessedLog(self.layout, host)
            witnessed.append(3)
            log = witnessed.log
            before = stored(log), log.next_offset, log.active.end_position
            host.fs.faults.fail_next(
                "write", errno.ENOSPC, path=log.active.path, partial_bytes=partial_bytes
            )
            expect(WriteFailedError, witnessed.append)
            assert (stored(log), log.next_offset, log.active.end_position) == before
            check_invariants(log)
            witnessed.append_segments(1)
            assert stored(log) == witnessed.testimony.entries

    def test_a_part_that_cannot_be_cut_back_is_no_entry(self) -> None:
        """Where even the clean-up after a refused write fails, later appends are still found."""
        for partial_bytes in (1, 15, 10_000):
            host = SimulatedHost()
            witnessed = WitnessedLog(self.layout, host)
            witnessed.append(2)
            path = witnessed.log.active.path
            host.fs.faults.fail_next("write", errno.EIO, path=path, partial_bytes=partial_bytes)
            host.fs.faults.fail_next("truncate", errno.EIO, path=path)
            expect(WriteFailedError, witnessed.append)
            for count in (0, 1):
                witnessed.append(count)
                witnessed.stop()
                witnessed = WitnessedLog(self.layout, host, witnessed.testimony, was_clean=True)
                assert stored(witnessed.log) == witnessed.testimony.entries

    def test_a_full_disk_leaves_no_trace(self) -> None:
        """However little room is left, the append that does not fit leaves nothing behind."""
        for free_bytes in range(0, 200, 7):
            host = SimulatedHost()
            witnessed = WitnessedLog(self.layout, host)
            witnessed.append(2)
            host.fs.fill_up(free_bytes)
            error = append_until_refused(witnessed)
            assert isinstance(error, WriteFailedError), repr(error)
            host.fs.faults.clear()
            check_invariants(witnessed.log)
            assert stored(witnessed.log) == witnessed.testimony.entries
            witnessed.append(3)
            assert stored(witnessed.log) == witnessed.testimony.entries


def append_until_refused(witnessed: WitnessedLog) -> Exception:
    """Append until something is raised; return it."""
    for _ in range(1000):
        try:
            witnessed.append()
        except (LogStoreError, OSError) as error:
            return error
    raise AssertionError("1000 appends fit on a full disk")
