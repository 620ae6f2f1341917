"""What Java takes off both ends of a text (``String.trim``): control characters and the blank."""

from __future__ import annotations

_TRIMMED = "".join(map(chr, range(0x21)))


def trimmed(text: str) -> str:
    """Return a text without what says nothing at its ends."""
    return text.strip(_TRIMMED)


def is_blank(text: str | None) -> bool:
    """Tell whether a text is given and says nothing."""
    return text is not None and not trimmed(text)
