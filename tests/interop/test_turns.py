"""The order in which interop tests begin is that of files that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.turns import APART, LONGEST, ON_SPARK, rank

pytestmark = pytest.mark.interop


def test_whoever_takes_turns_is_there() -> None:
    """A file that is renamed is renamed there, too, or its turn is lost."""
    here = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    assert set(LONGEST) <= here
    assert here >= APART | ON_SPARK
    assert len(set(LONGEST)) == len(LONGEST)


def test_the_longest_begin() -> None:
    """Files that are not named come after all that are."""
    ranks = [rank(Path(name)) for name in (*LONGEST, "test_turns.py")]
    assert ranks == list(range(len(LONGEST) + 1))
