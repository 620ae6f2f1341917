"""
The laws of every log across power losses, deaths of the process, failing disks and damage.

In one sentence: after whatever happened, opening the log again gives a run of exactly the entries
that were appended, at least as far as the last flush, and what is damaged is cut or refused, never
handed out. Used like :mod:`logstore.testing.segment_contract`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar

from logstore.errors import CorruptEntryError
from logstore.host import read_file
from logstore.retention import RetentionPolicy
from logstore.testing.crash_points import CrashPoint, every_power_loss
from logstore.testing.failing_disk_contract import FailingDiskContract
from logstore.testing.power_loss import LOSE_UNSYNCED, PowerLoss
from logstore.testing.simulated_host import SimulatedHost
from logstore.testing.witnessed_log import (
    CHECKPOINT,
    AnyLog,
    StoredEntry,
    Testimony,
    WitnessedLog,
    check_invariants,
    stored,
)


class RecoveryContract(FailingDiskContract):
    """What a log does when everything goes wrong."""

    #: how many lives of random work and random losses `test_random_lives` leads
    random_lives: ClassVar[int] = 40

    def make_host(self) -> SimulatedHost:
        """Return a host with sectors so small that even tiny entries are torn and reordered."""
        return SimulatedHost(sector_bytes=self.layout.sector_bytes)

    def points(
        self, work: str, *, random_losses: int = 2
    ) -> Iterator[tuple[CrashPoint, Testimony]]:
        """Yield every power loss during the named workload, with the testimony up to there."""
        testimony = Testimony()

        def workload(host: SimulatedHost) -> None:
            nonlocal testimony
            testimony = Testimony()
            getattr(self, work)(WitnessedLog(self.layout, host, testimony))

        for point in every_power_loss(
            workload, make_host=self.make_host, random_losses=random_losses
        ):
            yield point, testimony.copy()

    def check_points(self, work: str) -> None:
        """Recover at every point of the workload, check, and see that the log goes on."""
        for point, testimony in self.points(work):
            witnessed = self.recovered(point.host, testimony, point)
            self.check_going_on(point.host, witnessed)

    # power

    def test_every_power_loss_during_appends(self) -> None:
        """At every single point what was flushed is there and nothing that was not appended."""
        self.check_points("append_and_flush")

    def test_every_power_loss_during_cuts(self) -> None:
        """What was cut off never comes back once `truncate` has returned."""
        self.check_points("cut_and_go_on")

    def test_every_power_loss_during_retention(self) -> None:
        """Removed segments may come back, but never with a hole before the ones that stayed."""
        self.check_points("give_up_old_segments")

    def test_every_power_loss_during_recovery(self) -> None:
        """A recovery that loses power is followed by one that finds the same promises kept."""
        dice = random.Random(3)
        for point, testimony in self.points("cut_and_go_on", random_losses=1):
            if dice.random() > 0.03:
                continue

            def recover(host: SimulatedHost, testimony: Testimony = testimony) -> None:
                witnessed = WitnessedLog(self.layout, host, testimony.copy())
                witnessed.testimony.adopt(witnessed.log)
                witnessed.append(1)

            for second in every_power_loss(recover, make_host=point.host.fork):
                after = testimony.copy()
                # `recover` offers one entry more, which may have arrived
                witnessed = WitnessedLog(self.layout, second.host, after)
                found = stored(witnessed.log)
                if found and found[-1] not in after.entries:
                    after.entries = [*found]
                after.check(witnessed.log)

    def test_a_second_power_loss_soon_after_recovery(self) -> None:
        """What a recovery cut off does not come back behind what was appended after it."""
        dice = random.Random(4)
        for point, testimony in self.points("append_and_flush", random_losses=12):
            host = point.host
            witnessed = self.recovered(host, testimony, point)
            witnessed.testimony.adopt(witnessed.log)
            witnessed.append(dice.randrange(3))
            host.power_loss(PowerLoss.random(dice.randrange(1 << 30)))
            self.recovered(host, witnessed.testimony, f"again, after: {point}")

    def test_recovery_is_idempotent(self) -> None:
        """A second recovery finds nothing to do and the same entries, from any recovery point."""
        for point, testimony in self.points("append_and_flush", random_losses=4):
            host = point.host
            witnessed = self.recovered(host, testimony, point)
            expected = stored(witnessed.log), witnessed.log.span
            for is_from_start in (False, True):
                host.fs.process_death()
                if is_from_start and host.fs.exists(CHECKPOINT):
                    host.fs.remove(CHECKPOINT)
                witnessed = WitnessedLog(self.layout, host, testimony)
                assert (stored(witnessed.log), witnessed.log.span) == expected, point
                outcome = witnessed.log.recovery
                if not self.layout.leaves_remains:
                    assert outcome is None or outcome.is_clean, point

    def test_the_death_of_the_process_loses_nothing(self) -> None:
        """All that was appended is there when only the process died."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        for _ in range(4):
            self.append_and_flush(witnessed)
            expected = stored(witnessed.log), witnessed.log.span
            host.fs.process_death()
            witnessed = self.recovered(host, witnessed.testimony, "after a death")
            assert (stored(witnessed.log), witnessed.log.span) == expected

    def test_a_flush_covers_what_an_earlier_process_wrote(self) -> None:
        """Entries that a dead process left unsynced are durable after the next one's flush."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        witnessed.append_segments(2)
        host.fs.process_death()
        witnessed = WitnessedLog(self.layout, host, witnessed.testimony)
        witnessed.append(1)
        witnessed.flush()
        host.power_loss(LOSE_UNSYNCED)
        self.recovered(host, witnessed.testimony, "flushed by the second process")

    def test_random_lives(self) -> None:
        """Random work, power losses and deaths, life after life, keep every promise."""
        for seed in range(self.random_lives):
            dice = random.Random(seed)
            host = SimulatedHost(seed, sector_bytes=self.layout.sector_bytes)
            testimony = Testimony()
            for life in range(4):
                witnessed = self.recovered(host, testimony, f"seed {seed}, life {life}")
                testimony.adopt(witnessed.log)
                for _ in range(dice.randrange(12)):
                    self.do_something(witnessed, dice)
                if dice.random() < 0.3:
                    host.fs.process_death()
                else:
                    host.power_loss(PowerLoss.random(dice.randrange(1 << 30)))

    def do_something(self, witnessed: WitnessedLog, dice: random.Random) -> None:
        """Do one random thing."""
        kinds = ("append", "flush", "truncate", "retain")
        kind = dice.choices(kinds, weights=(5, 2, 2, 1))[0]
        entries = witnessed.testimony.entries
        if kind == "flush":
            witnessed.flush()
        elif kind == "truncate" and entries:
            offset = dice.choice(entries).next_offset
            if offset >= witnessed.log.start_offset or self.layout.may_start_at(
                witnessed.log, offset
            ):
                witnessed.truncate(offset)
        elif kind == "retain":
            base_offsets = list(witnessed.log.segments)
            witnessed.retain(RetentionPolicy(), start_offset=dice.choice(base_offsets))
        else:
            witnessed.append(dice.randrange(1, 6))

    # damage

    def damaged(self, number: int = -2) -> tuple[SimulatedHost, WitnessedLog, str, int]:
        """Return a flushed log, and where entry `number` stands: data file and position."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        witnessed.append_segments(1)
        witnessed.append(3)
        witnessed.log.active.seal()
        witnessed.flush()
        host.fs.remove(CHECKPOINT)  # so that the next start checks everything
        entry = witnessed.testimony.entries[number]
        segment = witnessed.log.find(entry.base_offset)
        assert segment is not None
        return host, witnessed, segment.path, segment.locate(entry.base_offset)

    def check_cut_at(
        self, host: SimulatedHost, witnessed: WitnessedLog, number: int, *, is_told: bool = True
    ) -> None:
        """Recover and find exactly the entries before entry `number`, and the rest reported."""
        expected = witnessed.testimony.entries[:number]
        host.fs.process_death()
        again = WitnessedLog(self.layout, host, Testimony())
        check_invariants(again.log)
        assert stored(again.log) == expected
        outcome = again.log.recovery
        assert outcome is not None, "nothing is said about the damage"
        assert outcome.is_clean != is_told, "nothing is said about the damage"
        assert bool(outcome.reason) == is_told
        again.testimony = Testimony(expected, next_number=500)
        self.check_going_on(host, again)

    def test_a_torn_entry_is_cut(self) -> None:
        """Wherever the last entry is cut short, recovery ends before it."""
        data = self.damaged()[1].testimony.entries[-1].data
        unprotected = self.layout.unprotected_bytes
        for kept in range(1, len(data)):
            host, witnessed, path, position = self.damaged(-1)
            entry_count = len(witnessed.testimony.entries)
            if not self.layout.is_preallocated:
                host.fs.open(path).truncate(position + kept)
                self.check_cut_at(host, witnessed, entry_count - 1)
            elif any(data[n] for n in range(kept, len(data)) if n not in unprotected):
                host.fs.damage(path, position + kept, bytes(len(data) - kept))
                is_told = any(data[:kept])  # zeros tell nobody that they were an entry
                self.check_cut_at(host, witnessed, entry_count - 1, is_told=is_told)

    def test_garbage_behind_the_end_is_cut(self) -> None:
        """Zeros, ones, noise and an old entry behind the last one are cut, however long."""
        noise = random.Random(1).randbytes(600)
        for size_bytes in (1, 7, 16, 20, 61, 600):
            for pattern in (bytes(600), b"\xff" * 600, noise):
                host, witnessed, path, _ = self.damaged(-1)
                self.write_behind_end(host, witnessed, path, pattern[:size_bytes])
                is_told = any(pattern[:size_bytes]) or not self.layout.is_preallocated
                entry_count = len(witnessed.testimony.entries)
                self.check_cut_at(host, witnessed, entry_count, is_told=is_told)

    def write_behind_end(
        self, host: SimulatedHost, witnessed: WitnessedLog, path: str, data: bytes
    ) -> None:
        """Put bytes behind the last entry of the active segment, as far as the file reaches."""
        position = self.layout.behind_end(witnessed.log.active)
        if self.layout.is_preallocated:
            host.fs.damage(path, position, data)
        else:
            host.fs.open(path).write(position, data)

    def test_an_old_entry_behind_the_end_is_cut(self) -> None:
        """A valid entry in the wrong place, as a misdirected write leaves it, is not believed."""
        for number in (0, -2, -1):
            host, witnessed, path, _ = self.damaged(-1)
            old = witnessed.testimony.entries[number].data
            self.write_behind_end(host, witnessed, path, old)
            self.check_cut_at(host, witnessed, len(witnessed.testimony.entries))

    def test_a_lost_write_is_noticed(self) -> None:
        """Where an acknowledged entry was never written, recovery ends."""
        for lost in (0, 1, 4):
            host = SimulatedHost()
            witnessed = WitnessedLog(self.layout, host)
            path = witnessed.log.active.path
            host.fs.faults.lose_next_write(path=path, after=lost)
            witnessed.append(6)
            self.check_cut_at(host, witnessed, lost)

    def test_a_misdirected_write_is_noticed(self) -> None:
        """A valid entry that landed in the place of an older one is not taken for it."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        if witnessed.log.active.may_skip_offsets:
            return  # the entry might stand behind a hole; nothing in the format tells
        entries = witnessed.append(3)
        before = sum(len(entry.data) for entry in entries)
        shift_bytes = len(entries[0].data) - before
        host.fs.faults.misdirect_next(path=witnessed.log.active.path, shift_bytes=shift_bytes)
        witnessed.append(1)
        self.check_cut_at(host, witnessed, 1)

    def test_a_flipped_bit_is_harmless_or_reported(self) -> None:
        """No entry is handed out that differs from what was appended."""
        protected = self.protected_places(self.damaged()[1].testimony.entries[-2])
        for place, bit in protected:
            host, witnessed, path, position = self.damaged(-2)
            host.fs.flip(path, position + place, bit)
            self.check_refused(witnessed)
            self.check_cut_at(host, witnessed, len(witnessed.testimony.entries) - 2)

    def protected_places(self, entry: StoredEntry) -> list[tuple[int, int]]:
        """Return (byte, bit) for every byte that a checksum covers, the bits in turns."""
        unprotected = self.layout.unprotected_bytes
        return [(n, n % 8) for n in range(len(entry.data)) if n not in unprotected]

    def check_refused(self, witnessed: WitnessedLog) -> None:
        """Read the damaged log without recovery: everything up to the damage, then an error."""
        expected = witnessed.testimony.entries[:-2]
        found: list[StoredEntry] = []
        try:
            for entry in witnessed.log.entries():
                found.append(StoredEntry.of(entry))  # noqa: PERF401 - must survive the error
        except CorruptEntryError:
            assert found == expected
        else:
            raise AssertionError("a damaged entry was handed out")

    def test_what_is_cut_is_kept_aside(self) -> None:
        """The bytes that a recovery takes out of a data file are in a file of their own."""
        host, _, path, position = self.damaged(-2)
        host.fs.damage(path, position, b"\xa5" * 8)
        tail = self.layout.content(host.fs.open(path).read(position, 1 << 20))
        host.fs.process_death()
        outcome = WitnessedLog(self.layout, host, Testimony()).log.recovery
        assert outcome is not None
        assert outcome.dropped_bytes == len(tail)
        host.power_loss(LOSE_UNSYNCED)
        assert [read_file(host.fs, name) for name in outcome.kept_aside] == [tail]

    def test_segments_behind_damage_are_kept_aside(self) -> None:
        """What a recovery takes out of the log is all there, in the order of the log."""
        host = SimulatedHost()
        witnessed = WitnessedLog(self.layout, host)
        witnessed.append_segments(3)
        witnessed.append(2)
        first = witnessed.log.segments.values()[0]
        position = first.locate(witnessed.testimony.entries[1].base_offset)
        host.fs.damage(first.path, position, b"\xa5" * 8)
        files = [segment.path for segment in witnessed.log.segments.values()]
        contents = [read_file(host.fs, name) for name in files]
        lost = b"".join(map(self.layout.content, [contents[0][position:], *contents[1:]]))
        host.fs.process_death()
        outcome = WitnessedLog(self.layout, host, Testimony()).log.recovery
        assert outcome is not None
        assert outcome.dropped_bytes == len(lost)
        host.power_loss(LOSE_UNSYNCED)
        kept = [self.layout.content(read_file(host.fs, name)) for name in outcome.kept_aside]
        assert b"".join(kept) == lost
        assert not set(outcome.kept_aside) & set(files)
        again = WitnessedLog(self.layout, host, Testimony()).log.recovery
        assert again is None or again.is_clean or self.layout.leaves_remains

    def test_damage_in_the_middle_ends_the_log(self) -> None:
        """Segments after a damaged one are not part of the log any more."""
        host, witnessed, path, position = self.damaged(1)
        host.fs.damage(path, position, b"\xa5" * 8)
        self.check_cut_at(host, witnessed, 1)

    def test_rot_below_the_recovery_point_is_not_passed_over(self) -> None:
        """Damage in data that recovery trusts is an error when it is read, not a hole."""
        host, witnessed, path, position = self.damaged(1)
        witnessed.write_checkpoint()
        size_bytes = len(witnessed.testimony.entries[1].data)
        host.fs.damage(path, position + size_bytes - 4, b"\xa5" * 4)
        host.fs.process_death()
        log = WitnessedLog(self.layout, host, Testimony()).log
        if log.recovery is not None and not log.recovery.is_clean:
            assert stored(log) == witnessed.testimony.entries[:1]
            return
        self.check_reads_stay(log, [entry.base_offset for entry in witnessed.testimony.entries])
        try:
            stored(log)
        except CorruptEntryError:
            return
        raise AssertionError("damaged entries were passed over in silence")

    def check_reads_stay(self, log: AnyLog, offsets: list[int]) -> None:
        """Read each offset: bytes of the segment that holds it, or an error, never a later one."""
        for offset in offsets:
            segment = log.find(offset)
            assert segment is not None
            with suppress(CorruptEntryError):
                extent = log.read(offset, 1)
                assert (extent.file.path, extent.size_bytes) == (segment.path, 1), offset
