"""The leader epoch checkpoint held against the epochs in the batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import attrs

from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.checkpoints import LEADER_EPOCHS
from logstore.segments.kafka.leader_epochs import LeaderEpochs
from logstore.tools.inspection.verification.finding import Finding, Severity
from logstore.tools.inspection.verification.segment_scan import SegmentScan


@attrs.frozen
class EpochsOfLog:
    """The (epoch, first offset) of each run of batches in ``[start_offset, end_offset)``."""

    runs: tuple[tuple[int, int], ...]
    start_offset: int
    end_offset: int
    is_compacted: bool


def epochs_of(scans: list[SegmentScan], start_offset: int, *, is_compacted: bool) -> EpochsOfLog:
    """Return the epochs of a whole log; an old message ends what was known before it."""
    runs: list[tuple[int, int]] = []
    for scan in scans:
        if scan.batch_count and not scan.has_epochs:
            runs.clear()
        for epoch, offset, _ in scan.epochs:
            if not runs or runs[-1][0] != epoch:
                runs.append((epoch, offset))
    end = scans[-1].next_offset if scans else 0
    return EpochsOfLog(tuple(runs), start_offset, end, is_compacted)


def epoch_findings(
    fs: FileSystem, directory: str, log: EpochsOfLog, *, is_there: bool
) -> Iterator[Finding]:
    """Yield where checkpoint and log differ. A log without epochs (-1) needs no checkpoint."""
    has_epochs = any(epoch >= 0 for epoch, _ in log.runs)
    if not is_there:
        if has_epochs:
            yield Finding(
                "epochs-missing",
                LEADER_EPOCHS,
                f"is missing, though the batches have leader epochs ({_shown(log)}): which of them "
                "a new leader confirms cannot be told",
            )
        return
    try:
        entries = LeaderEpochs.load(fs, directory).entries
    except CorruptFileError as error:
        yield Finding("epochs", LEADER_EPOCHS, f"cannot be read: {error.reason}")
        return
    yield from _order(entries, log)
    ends = [*(start for _, start in log.runs[1:]), log.end_offset]
    for (epoch, offset), end in zip(log.runs, ends, strict=False):
        if _is_forgotten_deletion(epoch, offset, entries, log):
            text = (
                f"says nothing of the offsets before {entries[0][1]}: they were deleted after "
                f"{log.start_offset} was noted as the log's start, as it is once a minute"
            )
            yield Finding("epochs", LEADER_EPOCHS, text, None, offset, Severity.NOTE)
            continue
        reason = _wrong(epoch, offset, entries, log)
        if reason is None and not log.is_compacted:
            reason = _interrupted(epoch, (offset, end), entries)
        if reason is not None:
            yield Finding("epochs", LEADER_EPOCHS, reason, offset=offset)


def _order(entries: list[tuple[int, int]], log: EpochsOfLog) -> Iterator[Finding]:
    last_start = -1
    for epoch, start in entries:
        if start <= last_start:
            reason = f"epoch {epoch} starts at offset {start}, not behind {last_start}"
            yield Finding("epochs", LEADER_EPOCHS, reason, offset=start)
        if start > log.end_offset:
            reason = f"epoch {epoch} starts at offset {start}, but the log ends at {log.end_offset}"
            yield Finding("epochs", LEADER_EPOCHS, reason, offset=start)
        last_start = max(last_start, start)


def _is_forgotten_deletion(
    epoch: int, offset: int, entries: list[tuple[int, int]], log: EpochsOfLog
) -> bool:
    """
    Tell whether the epochs begin late because what is before them was once deleted.

    A deletion moves the epochs at once, the checkpoint of the log start a minute later.
    """
    if epoch < 0 or not log.start_offset <= offset or not entries:
        return False
    first_epoch, first_start = entries[0]
    return epoch <= first_epoch and offset < first_start <= log.end_offset


def _wrong(epoch: int, offset: int, entries: list[tuple[int, int]], log: EpochsOfLog) -> str | None:
    if epoch < 0 or offset < log.start_offset:
        return None
    slot = bisect_right(entries, offset, key=lambda entry: entry[1]) - 1
    found = entries[slot] if slot >= 0 else None
    if found is None or found[0] != epoch:
        told = "none" if found is None else f"epoch {found[0]}"
        return f"the batch at offset {offset} is of epoch {epoch}, by the checkpoint of {told}"
    starts_early = found[1] < offset and found[1] > log.start_offset
    if starts_early and not log.is_compacted and (epoch, offset) != log.runs[0]:
        return f"epoch {epoch} starts at offset {offset}, not at {found[1]}"
    return None


def _interrupted(epoch: int, run: tuple[int, int], entries: list[tuple[int, int]]) -> str | None:
    """Return what is wrong with an epoch that starts where another one's batches are."""
    if epoch < 0:
        return None
    for other, start in entries:
        if other != epoch and run[0] < start < run[1]:
            return (
                f"the batch at offset {start} is of epoch {epoch}, by the checkpoint of epoch "
                f"{other}"
            )
    return None


def _shown(log: EpochsOfLog) -> str:
    return ", ".join(f"{epoch} from offset {offset}" for epoch, offset in log.runs[:5])
