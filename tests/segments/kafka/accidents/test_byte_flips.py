"""
Every flipped byte of a small store is harmless, reported with its file, or of a kind named here.

Every byte of every file has its turn with ``./dev accidents``; `./dev test` takes every 37th.
"""

from __future__ import annotations

import os

import pytest

from logstore.host import read_file
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.testing import SimulatedHost
from tests.segments.kafka.accidents.consumer import StuckError
from tests.segments.kafka.accidents.small_store import Outcome, names_file, places, read_all
from tests.segments.kafka.accidents.small_store import small_store as make_store
from tests.segments.kafka.accidents.watched_host import keep_metadata_indexes_small

STEP = 1 if os.environ.get("LOGSTORE_DOUBLE_LOSSES") else 37
PARTS = 4

pytestmark = pytest.mark.timeout(0 if STEP == 1 else 120)


def known_weakness(
    path: str, position: int, pristine: SimulatedHost, *, is_checked: bool
) -> str | None:
    """
    Return why nothing in Kafka's format tells that this byte is wrong; None: it must be told.

    A clean stop makes Kafka trust lengths and indexes, and so do we. ``logstore verify`` compares
    what is derived with the log.
    """
    if path.endswith(".txnindex"):
        return "which transactions were aborted stands in the index alone, without a CRC"
    if path.endswith(".index"):
        return "a sparse index has no CRC: a search may end behind the batch that it looks for"
    if path.endswith("log-start-offset-checkpoint"):
        return "a checkpoint has no CRC: another log start hides records"
    if not path.endswith(".log"):
        return None
    start = 0
    for batch in iterate_entries(memoryview(read_file(pristine.fs, path))):
        if start <= position < start + 8:
            return "the base offset is outside of the CRC: records get other offsets"
        if start + 8 <= position < start + 12:
            return "a client that gets less than the length says waits for more"
        if start + 23 <= position < start + 27 and not is_checked:
            return "a clean stop takes the log end from the last batch's header, its CRC unchecked"
        start += batch.size_bytes
    return None


def flaws(good: Outcome, found: Outcome, path: str) -> set[str]:
    """Return what is wrong: silent losses, wrong records, errors that do not say where."""
    if found.refusal is not None:
        return set() if names_file(found.refusal) else {f"does not say where: {found.refusal}"}
    wrong: set[str] = set()
    is_told = any(path in line for line in found.told)
    for key, expected in good.readings.items():
        reading = found.readings.get(key)
        if reading is None:
            wrong.add(f"{key[0]} is gone")
        elif isinstance(reading, StuckError):
            wrong.add(f"{key}: {reading}")
        elif isinstance(reading, Exception):
            if not key[1].startswith("fetch") and not names_file(reading):
                wrong.add(f"{key}: does not say where: {reading}")
        elif isinstance(expected, list) and reading != expected:
            if any(record not in expected for record in reading):
                wrong.add(f"{key}: a wrong record is served")
            elif not is_told:
                wrong.add(f"{key}: records are missing in silence")
    return wrong


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(
    ("is_stopped", "is_writable"),
    [(True, True), (False, True), (True, False)],
    ids=["clean", "unclean", "read only"],
)
def test_a_flipped_byte_is_harmless_or_told(
    is_stopped: bool,
    is_writable: bool,
    part: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever reads gets the same records, or an error or a warning that names the file."""
    keep_metadata_indexes_small(monkeypatch)
    pristine = make_store(is_stopped=is_stopped)
    good = read_all(pristine.fork(), caplog, is_writable=is_writable)
    assert good.refusal is None
    assert all(isinstance(reading, list) and reading for reading in good.readings.values())
    found: list[str] = []
    for number, (path, position, _) in enumerate(places(pristine)):
        if number % (STEP * PARTS) // STEP != part or number % STEP:
            continue
        fork = pristine.fork()
        fork.fs.flip(path, position, (number // STEP + position) % 8)
        outcome = read_all(fork, caplog, is_writable=is_writable)
        wrong = flaws(good, outcome, path)
        is_checked = not is_stopped
        if wrong and known_weakness(path, position, pristine, is_checked=is_checked) is None:
            found.append(f"{path} at {position}: {sorted(wrong)}")
    assert not found, "\n".join(found)
