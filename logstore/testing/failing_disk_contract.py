"""
The laws of every log on a disk that refuses.

In one sentence: whichever operation fails, the log is as before and goes on, or it says so and
takes nothing any more until it is opened anew; either way no promise is broken. Part of
:class:`logstore.testing.recovery_contract.RecoveryContract`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, product

from logstore.errors import LogStoreError, WriteFailedError
from logstore.retention import RetentionPolicy
from logstore.testing.accidents import Accidents
from logstore.testing.crash_points import every_power_loss
from logstore.testing.disk_faults import FaultKind
from logstore.testing.power_loss import LOSE_UNSYNCED
from logstore.testing.simulated_host import SimulatedHost
from logstore.testing.witnessed_log import (
    StoredEntry,
    Testimony,
    WitnessedLog,
    check_invariants,
    expect,
    stored,
)

KINDS: tuple[FaultKind, ...] = (
    "open",
    "write",
    "truncate",
    "sync",
    "rename",
    "remove",
    "sync_directory",
)


class FailingDiskContract(Accidents):
    """What a log does when the disk raises."""

    def test_a_failed_flush_promises_nothing(self) -> None:
        """When a sync raises, the flush raises and the recovery point stays."""
        for number in range(20):
            host = SimulatedHost()
            witnessed = WitnessedLog(self.layout, host)
            witnessed.append_segments(2)
            before = witnessed.log.recovery_point
            host.fs.faults.fail_next_sync(errno.EIO, after=number, drops_unsynced=False)
            planned = host.fs.faults.planned[-1]
            try:
                witnessed.log.flush()
            except (OSError, LogStoreError):
                assert witnessed.log.recovery_point == before
                with suppress(OSError, LogStoreError):  # it need not be believed any more
                    witnessed.flush()
            else:
                assert not planned.has_struck, "a failed sync was swallowed"
                host.fs.faults.clear()
            host.power_loss(LOSE_UNSYNCED)
            self.recovered(host, witnessed.testimony, f"sync {number} failed")
            if not planned.has_struck:
                return
        raise AssertionError("a flush of three segments syncs more than 20 files")

    def test_every_single_failure_of_appends_and_flushes(self) -> None:
        """Whichever operation fails, the log holds what it held, goes on, and breaks no promise."""
        for kind, number, host, witnessed in self.failures("append_and_flush"):
            context = f"{kind} {number} failed"
            assert stored(witnessed.log) == witnessed.testimony.entries, context
            check_invariants(witnessed.log)
            try:
                witnessed.append_segments(1)
                witnessed.flush()
            except (OSError, LogStoreError):
                assert kind == "sync", context  # only what a sync lost ends it
            host.power_loss(LOSE_UNSYNCED)
            self.recovered(host, witnessed.testimony, context)

    def test_every_single_failure_of_cuts_and_removals(self) -> None:
        """Whichever operation of a truncation or a retention fails, the next start mends it."""
        for work in ("cut_and_go_on", "give_up_old_segments"):
            for kind, number, host, witnessed in self.failures(work):
                host.fs.process_death()
                again = self.recovered(host, witnessed.testimony, f"{kind} {number} failed")
                self.check_going_on(host, again)

    def failures(self, work: str) -> Iterator[tuple[FaultKind, int, SimulatedHost, WitnessedLog]]:
        """Yield the log after every single failure of the named workload, faults cleared."""
        for kind in KINDS:
            for number in range(1, 1000):
                host = SimulatedHost()
                witnessed = WitnessedLog(self.layout, host)
                host.fs.faults.fail_next(kind, errno.EIO, path="/log*", after=number - 1)
                planned = host.fs.faults.planned[-1]
                with suppress(OSError, LogStoreError):
                    getattr(self, work)(witnessed)
                if not planned.has_struck:
                    break
                yield kind, number, host, witnessed

    # cuts

    def prepared(self) -> tuple[SimulatedHost, WitnessedLog, list[int]]:
        """Return a log with three segments, all durable, and where to cut it."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        witnessed.append_segments(3)
        witnessed.append(2)
        witnessed.flush()
        start = list(witnessed.log.segments)[1]
        witnessed.retain(RetentionPolicy(), start_offset=start)
        entries = witnessed.testimony.entries
        oldest = next(entry for entry in entries if entry.base_offset == start)
        below_start, across, within = 0, oldest.next_offset, entries[-2].next_offset
        return host, witnessed, [below_start, across, within]

    def failed_cuts(self) -> Iterator[tuple[str, SimulatedHost, WitnessedLog]]:
        """Yield the log after every single failure of every kind of cut, faults cleared."""
        for choice, kind in product(range(3), KINDS):
            for number in count():
                host, witnessed, cuts = self.prepared()
                host.fs.faults.fail_next(kind, errno.EIO, path="/log*", after=number)
                planned = host.fs.faults.planned[-1]
                with suppress(OSError, LogStoreError):
                    witnessed.truncate(cuts[choice])
                host.fs.faults.clear()
                if not planned.has_struck:
                    break
                yield f"cut at {cuts[choice]}, {kind} {number} failed", host, witnessed

    def test_after_a_failed_cut_nothing_false_is_promised(self) -> None:
        """A log whose truncation failed goes on in order, or refuses until it is opened anew."""
        for context, host, witnessed in self.failed_cuts():
            with suppress(OSError, LogStoreError):  # it may refuse, but not break a promise
                witnessed.append(2)
                witnessed.flush()
            host.power_loss(LOSE_UNSYNCED)
            self.recovered(host, witnessed.testimony, context)

    def test_a_failed_cut_is_final_until_the_log_is_opened_anew(self) -> None:
        """The log is as it was, or takes nothing more and can be read as far as it is there."""
        for context, host, witnessed in self.failed_cuts():
            log, testimony = witnessed.log, witnessed.testimony
            found = self.readable(witnessed)
            entries = [e for e in testimony.entries if e.base_offset >= log.start_offset]
            assert found == entries[: len(found)], context
            if log.refusal is None:
                assert found == entries, context
            else:
                self.check_refuses(witnessed)
            host.fs.process_death()
            self.check_going_on(host, self.recovered(host, testimony, context))

    def readable(self, witnessed: WitnessedLog) -> list[StoredEntry]:
        """Return what can be read: all up to the end, or to a segment that is partly gone."""
        found: list[StoredEntry] = []
        try:
            for entry in witnessed.log.entries():
                found.append(StoredEntry.of(entry))  # noqa: PERF401 - must survive the error
        except OSError:
            return found
        log = witnessed.log
        end = found[-1].next_offset if found else log.start_offset
        assert end == log.next_offset or (log.active.may_end_padded and end < log.next_offset)
        return found

    def check_refuses(self, witnessed: WitnessedLog) -> None:
        """See that everything that writes is refused, says what to do, and changes nothing."""
        log = witnessed.log
        before = log.span, log.recovery_point, list(log.segments), self.readable(witnessed)
        calls: list[Callable[[], object]] = [
            witnessed.append,
            log.flush,
            log.roll,
            lambda: log.truncate(log.start_offset),
            lambda: log.restart(log.next_offset),
        ]
        for call in calls * 2:
            error = expect(WriteFailedError, call)
            assert "open" in str(error), f"what is to be done? {error}"
        assert log.retain(RetentionPolicy(retention_bytes=0), 0, log.next_offset) == []
        after = log.span, log.recovery_point, list(log.segments), self.readable(witnessed)
        assert after == before

    # removals

    def test_after_a_failed_removal_the_log_goes_on(self) -> None:
        """A retention that failed is made good by the next; nothing after the old ones is lost."""
        for kind in KINDS:
            for number in count():
                host = SimulatedHost()
                witnessed = WitnessedLog(self.layout, host)
                witnessed.append_segments(3)
                witnessed.flush()
                start = list(witnessed.log.segments)[2]
                host.fs.faults.fail_next(kind, errno.EIO, path="/log*", after=number)
                planned = host.fs.faults.planned[-1]
                with suppress(OSError, LogStoreError):
                    witnessed.retain(RetentionPolicy(), start_offset=start)
                host.fs.faults.clear()
                if not planned.has_struck:
                    break
                witnessed.append_segments(1)
                witnessed.flush()
                witnessed.retain(RetentionPolicy(), start_offset=start)
                check_invariants(witnessed.log)
                expected = [e for e in witnessed.testimony.entries if e.base_offset >= start]
                assert (witnessed.log.start_offset, stored(witnessed.log)) == (start, expected)
                host.power_loss(LOSE_UNSYNCED)
                again = self.recovered(host, witnessed.testimony, f"{kind} {number} failed")
                assert stored(again.log) == expected

    def test_a_removal_that_was_not_made_durable_leaves_no_gap(self) -> None:
        """Before the next segment goes, the removal of the last one is made durable."""
        testimony = Testimony()

        def workload(host: SimulatedHost) -> None:
            nonlocal testimony
            testimony = Testimony()
            witnessed = WitnessedLog(self.layout, host, testimony)
            witnessed.append_segments(3)
            witnessed.flush()
            start = list(witnessed.log.segments)[2]
            host.fs.faults.fail_next("sync_directory", errno.EIO, path="/log")
            with suppress(OSError):
                witnessed.retain(RetentionPolicy(), start_offset=start)
            witnessed.retain(RetentionPolicy(), start_offset=start)

        for point in every_power_loss(workload, random_losses=12):
            self.recovered(point.host, testimony.copy(), point)

    # syncs

    def test_a_failed_directory_sync_promises_nothing(self) -> None:
        """The flush after a failed sync of the directory syncs the directory again."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        witnessed.append_segments(2)
        host.fs.faults.fail_next("sync_directory", errno.EIO, path="/log")
        try:
            witnessed.log.flush()
        except (OSError, LogStoreError):
            pass
        else:
            raise AssertionError("a failed sync was swallowed")
        witnessed.flush()
        host.power_loss(LOSE_UNSYNCED)
        self.recovered(host, witnessed.testimony, "flushed at the second try")

    def test_dropped_pages_are_not_promised(self) -> None:
        """After a failed sync the kernel may have forgotten the pages: no flush may claim them."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        witnessed.append(3)
        host.fs.faults.fail_next_sync(errno.EIO, path=witnessed.log.active.path)
        for _ in range(2):
            try:
                witnessed.flush()
            except (OSError, LogStoreError):
                continue
        host.power_loss(LOSE_UNSYNCED)
        self.recovered(host, witnessed.testimony, "the second flush claimed dropped pages")

    def test_a_failed_sync_of_data_is_final_until_the_log_is_opened_anew(self) -> None:
        """Whichever segment it was, nothing is appended any more; all can be read."""
        for number in range(3):
            host = SimulatedHost()
            witnessed = WitnessedLog(self.layout, host)
            witnessed.append_segments(2)
            witnessed.append(2)
            segment = list(witnessed.log.segments.values())[number]
            host.fs.faults.fail_next_sync(errno.EIO, path=segment.path)
            with suppress(OSError):
                witnessed.flush()
            self.check_refuses(witnessed)
            assert stored(witnessed.log) == witnessed.testimony.entries
            host.power_loss(LOSE_UNSYNCED)
            again = self.recovered(host, witnessed.testimony, f"segment {number}")
            self.check_going_on(host, again)

    def test_a_failed_sync_beside_a_roll_is_final(self) -> None:
        """Also where the log has rolled between the beginning of the flush and its failure."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        witnessed.append(2)
        task = witnessed.log.begin_flush()
        host.fs.faults.fail_next_sync(errno.EIO, path=witnessed.log.active.path)
        witnessed.append_segments(1)
        with suppress(OSError):
            task.run()
        self.check_refuses(witnessed)

    def test_a_failed_sync_of_what_was_given_up_is_nothing(self) -> None:
        """A segment that a retention removed meanwhile promises nothing; the log goes on."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        witnessed.append_segments(2)
        host.fs.faults.fail_next_sync(errno.EIO, path=witnessed.log.segments.values()[0].path)
        task = witnessed.log.begin_flush()
        witnessed.retain(RetentionPolicy(), start_offset=list(witnessed.log.segments)[1])
        task.run()
        witnessed.log.end_flush(task)
        assert witnessed.log.recovery_point == witnessed.log.next_offset
        witnessed.append_segments(1)
        witnessed.flush()

    def test_a_failed_sync_of_a_clean_up_is_final(self) -> None:
        """A sync that fails while remains are cut off may have lost what stands before them."""
        for partial_bytes in (1, 10_000):
            host = SimulatedHost()
            witnessed = WitnessedLog(self.layout, host)
            witnessed.append(3)
            path = witnessed.log.active.path
            host.fs.faults.fail_next("write", errno.EIO, path=path, partial_bytes=partial_bytes)
            host.fs.faults.fail_next_sync(errno.EIO, path=path)
            with suppress(WriteFailedError):
                witnessed.append()
            self.check_refuses(witnessed)
            assert stored(witnessed.log) == witnessed.testimony.entries
            host.power_loss(LOSE_UNSYNCED)
            self.recovered(host, witnessed.testimony, f"{partial_bytes} bytes left behind")
