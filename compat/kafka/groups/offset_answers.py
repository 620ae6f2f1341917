"""
Answers about offsets: of each topic what was refused at once comes first, as Kafka tells it.

A topic that nobody knows is in the answer even without partitions, one that is known only with
what was asked of it.

Source: the builders of ``OffsetCommitResponse``, ``TxnOffsetCommitResponse`` and
``OffsetDeleteResponse``.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from logstore.compat.kafka.error_codes import ErrorCode

KeyT = TypeVar("KeyT")


class OffsetAnswers(Generic[KeyT]):
    """
    The partitions of one request, refused or let through.

    What is let through goes by its topic's name, what is refused by whatever the topic was called.
    """

    def __init__(self) -> None:
        self._refused: dict[KeyT | str, list[tuple[int, ErrorCode]]] = {}
        self._passed: list[tuple[str, list[int]]] = []

    def refuse(self, topic: KeyT | str, indexes: Iterable[int], code: ErrorCode) -> None:
        """Refuse a topic that is not there, with all that is asked of it."""
        self._refused.setdefault(topic, []).extend((index, code) for index in indexes)

    def sift(self, topic: str, indexes: Sequence[int], known: Container[int]) -> list[int]:
        """Refuse what a topic does not have (3), and return what it has."""
        passed = [index for index in indexes if index in known]
        if len(passed) < len(indexes):
            unknown = [index for index in indexes if index not in known]
            self.refuse(topic, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if passed:
            self._passed.append((topic, passed))
        return passed

    def told(
        self, became: Mapping[tuple[str, int], ErrorCode]
    ) -> list[tuple[KeyT | str, list[tuple[int, ErrorCode]]]]:
        """Return the answer by topics, `became` of what was let through in it."""
        passed: list[tuple[KeyT | str, list[tuple[int, ErrorCode]]]] = [
            (topic, [(index, became[topic, index]) for index in indexes])
            for topic, indexes in self._passed
        ]
        if not self._refused:
            return passed
        found = {topic: list(codes) for topic, codes in self._refused.items()}
        for topic, codes in passed:
            found.setdefault(topic, []).extend(codes)
        return list(found.items())
