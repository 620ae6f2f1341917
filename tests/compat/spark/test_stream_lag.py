"""The lag of a streaming query, read off what Spark says of its progress."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logstore.compat.spark import lag

LATEST = {"t": {"0": 10, "1": 7}, "new": {"0": 3}}
END = {"t": {"0": 4, "1": 7}}


@pytest.mark.parametrize("is_text", [False, True])
def test_it_is_what_lies_between_the_end_and_the_latest(is_text: bool) -> None:
    """As texts, which a live query has, or as its JSON has it; of a new topic all is to come."""
    latest, end = (json.dumps(one) if is_text else one for one in (LATEST, END))
    progress: dict[str, Any] = {"sources": [{"latestOffset": latest, "endOffset": end}]}
    assert lag(progress) == {("t", 0): 6, ("t", 1): 0, ("new", 0): 3}


def test_sources_that_are_no_stores_are_passed_over() -> None:
    """A rate source counts seconds, files have a number; some say nothing at all."""
    progress: dict[str, Any] = {
        "sources": [
            {"latestOffset": None, "endOffset": 17},
            {"latestOffset": {"logOffset": 4}, "endOffset": {"logOffset": 2}},
            {"latestOffset": {"t": {"0": 2}}, "endOffset": None},
        ]
    }
    assert lag(progress) == {("t", 0): 2}
