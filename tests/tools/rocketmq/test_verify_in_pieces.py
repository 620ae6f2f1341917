"""``verify`` of a RocketMQ store cut into pieces for workers: what is found is the same."""

from __future__ import annotations

import pickle
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pytest

from logstore.os_host import system_host
from logstore.tools.inspection.rocketmq.verification.range_walk import (
    Piece,
    PieceOutcome,
    run_pieces,
)
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck
from logstore.tools.inspection.verification.finding import Finding
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.tools.rocketmq.damaged_store import damage

pytest.importorskip("numba")

CASES = [pytest.param(case, id=case.id) for case in golden_cases(without=("damage",))]
TRIED = [
    pytest.param(case, id=case.id)
    for case in golden_cases("plain", "delay", "filters", "batch-queue", "ipv6", "transactions")
]
#: shorter than most records, some records long, longer than a file
RANGE_BYTES = (300, 7_001, 1 << 30)


@attrs.define
class PickledWalks:
    """Walks as Spark does: pieces and outcomes travel as pickles, and later ones are done first."""

    range_bytes: int
    piece_count: int = 0
    #: the bytes of the commit log that were found good
    good_bytes: int = 0

    def __call__(self, pieces: Sequence[Piece], progress: object) -> Iterator[PieceOutcome]:
        """Yield what became of each piece, in their order."""
        del progress
        self.piece_count = len(pieces)
        travelled: list[Piece] = pickle.loads(pickle.dumps(pieces))  # noqa: S301 - our own
        done = pickle.dumps([run_pieces([piece]) for piece in reversed(travelled)])
        for (outcome,) in reversed(pickle.loads(done)):  # noqa: S301 - our own
            parts = outcome.parts
            self.good_bytes += sum(part.end_position - part.position for part in parts)
            yield outcome


def both(store: Path, walks: PickledWalks) -> tuple[list[Finding], list[Finding]]:
    """Return what is found here, and what in pieces."""
    here = list(StoreCheck(system_host().fs, str(store), {}).findings())
    return here, list(StoreCheck(system_host().fs, str(store), {}).findings(None, walks))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("range_bytes", RANGE_BYTES)
def test_sound_stores_are_found_sound_in_pieces(range_bytes: int, case: GoldenCase) -> None:
    """Stores of every kind that brokers left: the same notes in order, and no damage."""
    for store in case.stores.values():
        here, there = both(store, PickledWalks(range_bytes))
        assert there == here
        assert not [one for one in there if one.is_damage]


@pytest.mark.parametrize("case", TRIED)
@pytest.mark.parametrize("range_bytes", RANGE_BYTES[:2])
def test_damage_is_told_alike(range_bytes: int, case: GoldenCase, tmp_path: Path) -> None:
    """Any byte of log, units or index changed, any file cut or gone: the same findings in order."""
    chance = random.Random(f"{case.id} {range_bytes}")
    told = 0
    for number in range(6):
        store = case.copy_store(tmp_path / str(number))
        for _ in range(chance.choice((1, 1, 2, 5))):
            damage(store, chance)
        here, there = both(store, PickledWalks(range_bytes))
        assert there == here, number
        told += any(one.is_damage for one in here)
        shutil.rmtree(store)
    assert told > 1


@pytest.mark.parametrize("case", [*golden_cases("damage")], ids=lambda case: case.id)
def test_the_damaged_golden_stores_are_told_alike(case: GoldenCase) -> None:
    """What real brokers were given to recover, and what they made of it."""
    for pair in case.pairs:
        for store in (pair.before, pair.after):
            here, there = both(store, PickledWalks(7_001))
            assert there == here, pair.name


@pytest.mark.parametrize("version", ["4.9.8", "5.5.0"])
def test_workers_do_all_of_a_sound_store(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever puts the pieces together reads no message, no unit and no entry of it."""
    from logstore.tools.inspection.rocketmq.verification import walked_log

    (case,) = golden_cases("plain", version=version)
    walks = PickledWalks(7_001)

    def refuse(*found: object) -> None:
        raise AssertionError(found)

    monkeypatch.setattr(walked_log.WalkedLog, "_show", refuse)
    check = StoreCheck(system_host().fs, str(case.store), {})
    assert list(check.findings(None, walks)) == []
    assert walks.piece_count > 20
    assert walks.good_bytes == sum(end for end in ends_of_records(case))


def ends_of_records(case: GoldenCase) -> list[int]:
    """Return where the records of each file of the commit log end."""
    from tests.segments.rocketmq.golden_records import stored_records

    ends: dict[int, int] = {}
    file_bytes = int(case.settings["mappedFileSizeCommitLog"])
    for record in stored_records(case.store):
        number, position = divmod(record.physical_offset, file_bytes)
        ends[number] = position + len(record.data)
    return list(ends.values())
