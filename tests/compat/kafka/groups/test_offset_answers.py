"""Answers about offsets: what is refused at once comes first, and what is known only if asked."""

from __future__ import annotations

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.offset_answers import OffsetAnswers

OK, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_passes_is_told_as_it_came() -> None:
    """Topic by topic, one that comes twice twice; of one without partitions nothing is told."""
    answers: OffsetAnswers[str] = OffsetAnswers()
    assert answers.sift("a", [1, 0], (0, 1)) == [1, 0]
    assert answers.sift("b", [], (0,)) == []
    assert answers.sift("a", [1], (0, 1)) == [1]
    told = answers.told({("a", 0): OK, ("a", 1): UNKNOWN})
    assert told == [("a", [(1, UNKNOWN), (0, OK)]), ("a", [(1, UNKNOWN)])]


def test_what_is_refused_comes_first() -> None:
    """Topics with something refused, and in them that; a topic is told once then."""
    answers: OffsetAnswers[str] = OffsetAnswers()
    assert answers.sift("a", [0], (0, 1)) == [0]
    assert answers.sift("b", [7, 0, 8], (0,)) == [0]
    answers.refuse("nowhere", [], UNKNOWN)
    answers.refuse("strange", [3], ErrorCode.UNKNOWN_TOPIC_ID)
    assert answers.sift("a", [1], (0, 1)) == [1]
    assert answers.told({("a", 0): OK, ("a", 1): OK, ("b", 0): OK}) == [
        ("b", [(7, UNKNOWN), (8, UNKNOWN), (0, OK)]),
        ("nowhere", []),
        ("strange", [(3, ErrorCode.UNKNOWN_TOPIC_ID)]),
        ("a", [(0, OK), (1, OK)]),
    ]
