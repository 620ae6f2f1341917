"""Which of the names that there are was meant by one that is none of them."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean NAME?``, or "" where no name is like that one."""
    from difflib import get_close_matches  # only who errs needs it

    lowered = {one.lower(): one for one in known}
    nearest = get_close_matches(name.lower(), lowered, 1, 0.8)
    return f"; did you mean {lowered[nearest[0]]}?" if nearest else ""
