"""
Why internal topics could not be made: remembered for a while, told, and not tried again until then.

Source: ``ExpiringErrorCache`` of ``AutoTopicCreationManager``.
"""

from __future__ import annotations

from collections.abc import Iterable

_ERRORS_MAX = 1000


class CreationErrors:
    """Errors by topic, each until it expires; of too many the ones that expire first go."""

    def __init__(self) -> None:
        self._errors: dict[str, tuple[int, str]] = {}

    def put(self, topic: str, message: str, expire_ms: int, now_ms: int) -> None:
        """Remember why a topic could not be made."""
        self._errors[topic] = (expire_ms, message)
        kept = {name: one for name, one in self._errors.items() if one[0] > now_ms}
        while len(kept) > _ERRORS_MAX:
            del kept[min(kept, key=lambda name: kept[name][0])]
        self._errors = kept

    def of(self, topics: Iterable[str], now_ms: int) -> dict[str, str]:
        """Return the errors of these topics that have not expired."""
        found = ((topic, self._errors.get(topic)) for topic in topics)
        return {topic: one[1] for topic, one in found if one is not None and one[0] > now_ms}
