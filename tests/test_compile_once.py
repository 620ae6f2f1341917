"""Which tests a whole run gives to one process, so that loops are compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compile_once import COMPILING, scope_of

ROOT = Path(__file__).resolve().parent.parent


def test_what_compiles_is_there() -> None:
    """A file or folder that is renamed is renamed there, too, or others compile beside it."""
    assert [place for place in COMPILING if not (ROOT / place).exists()] == []


@pytest.mark.parametrize("place", COMPILING)
def test_what_compiles_stays_together(place: str) -> None:
    """It has one scope, whatever its file."""
    assert scope_of(f"{place}test_one.py::test_it[a::b]") == "compiling"


def test_other_files_have_scopes_of_their_own() -> None:
    """What a module sets up is set up once."""
    assert scope_of("tests/test_tidy.py::test_it[a::b]") == "tests/test_tidy.py"
