"""What the fuzz tests go by can fail them."""

from __future__ import annotations

import pytest

import tests.fuzzing
from logstore.errors import LogStoreError
from tests.fuzzing import complaint, rounds


def refuse(error: Exception) -> None:
    """Raise it."""
    raise error


def test_an_answer_and_an_error_of_ours_are_fine() -> None:
    """Bad input may be refused."""
    assert complaint(7, b"data", lambda: None) == ""
    assert complaint(7, b"data", lambda: refuse(LogStoreError("bad"))) == ""


def test_any_other_error_is_told_with_seed_and_data() -> None:
    """So that it can be had again."""
    told = complaint(7, b"\xab\xcd", lambda: refuse(ValueError("oops")))
    assert told.startswith("seed 7, over abcd:\nTraceback")
    assert told.endswith("ValueError: oops\n")


def test_what_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that hangs on bad input is a hole, too."""
    monkeypatch.setattr(tests.fuzzing, "STEP_SECONDS_MAX", 0.0)
    assert complaint(7, b"", lambda: sum(range(1000))).startswith("seed 7: ")


def test_without_time_asked_for_the_seeds_are_always_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One at the least, however long it takes."""
    monkeypatch.setattr(tests.fuzzing, "ASKED_SECONDS", 0.0)
    monkeypatch.setattr(tests.fuzzing, "USUAL_SECONDS", 0.0)
    (first,) = rounds(parts=1)
    (again,) = rounds(parts=1)
    assert first[0] == again[0] == 0
    assert first[1].random() == again[1].random()
