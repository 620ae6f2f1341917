"""What there is instead of what was asked for and is not there."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from logstore.errors import MissingSegmentError

_NAMES_SHOWN = 10


def no_such_topic(directory: str, topic: str, names: Collection[str]) -> MissingSegmentError:
    """Return the error for a topic that is not among `names`: the nearest, or the first of them."""
    nearest = get_close_matches(topic, names, 1)
    said = f"did you mean {nearest[0]}?" if nearest else _there_are(sorted(names))
    return MissingSegmentError(f"{directory}: there is no topic {topic}; {said}")


def _there_are(names: list[str]) -> str:
    if not names:
        return "there is none at all"
    rest = len(names) - _NAMES_SHOWN
    shown = ", ".join(names[:_NAMES_SHOWN])
    return f"there are {shown}" + (f" and {rest} more" if rest > 0 else "")
