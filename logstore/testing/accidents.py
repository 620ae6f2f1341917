"""What the contracts let happen to a log, and how they look at it afterwards."""

from __future__ import annotations

from logstore.errors import LogStoreError
from logstore.retention import RetentionPolicy
from logstore.testing.power_loss import LOSE_UNSYNCED
from logstore.testing.simulated_host import SimulatedHost
from logstore.testing.witnessed_log import (
    LogContract,
    Testimony,
    WitnessedLog,
    stored,
)


class Accidents(LogContract):
    """Workloads in which something goes wrong, and what must be found when all is over."""

    def append_and_flush(self, witnessed: WitnessedLog) -> None:
        """Append over several segments with flushes in between."""
        witnessed.append(2)
        witnessed.flush()
        witnessed.append_segments(1)
        witnessed.append(1)
        witnessed.flush()
        witnessed.append_segments(1)
        witnessed.flush()
        witnessed.append(2)

    def cut_and_go_on(self, witnessed: WitnessedLog) -> None:
        """Cut within a segment and across segments, and append after each cut."""
        witnessed.append_segments(2)
        witnessed.append(2)
        witnessed.flush()
        entries = witnessed.testimony.entries
        witnessed.truncate(entries[-2].next_offset)
        witnessed.append(2)
        witnessed.truncate(entries[2].next_offset)
        witnessed.append_segments(1)
        witnessed.flush()
        witnessed.append(1)

    def give_up_old_segments(self, witnessed: WitnessedLog) -> None:
        """Remove old segments between appends."""
        witnessed.append_segments(3)
        witnessed.flush()
        witnessed.retain(RetentionPolicy(), start_offset=list(witnessed.log.segments)[2])
        witnessed.append(1)
        witnessed.flush()
        witnessed.append(1)

    def recovered(self, host: SimulatedHost, testimony: Testimony, context: object) -> WitnessedLog:
        """Open the log after an accident and hold it to the testimony."""
        witnessed = WitnessedLog(self.layout, host, testimony)
        try:
            testimony.check(witnessed.log)
        except (AssertionError, LogStoreError) as error:
            error.add_note(str(context))
            raise
        return witnessed

    def check_going_on(self, host: SimulatedHost, witnessed: WitnessedLog) -> None:
        """Append and flush after a recovery, lose power, and find all of it."""
        witnessed.testimony.adopt(witnessed.log)
        witnessed.append(2)
        witnessed.flush()
        expected = stored(witnessed.log)
        host.power_loss(LOSE_UNSYNCED)
        again = self.recovered(host, witnessed.testimony, "after the recovery")
        assert stored(again.log) == expected
