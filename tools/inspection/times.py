"""Times as people write and read them: ISO-8601 in UTC, to the millisecond."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS = re.compile(r"[+-]?[0-9]{1,19}")


def iso_time(ms: int) -> str:
    """Return ``2023-11-14T22:13:20.000Z``; the bare number where no calendar has the day."""
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return str(ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> int:
    """
    Return ms since the epoch for a number of ms or an ISO-8601 time; UTC where it names no zone.

    Raises:
        ValueError: it is neither.

    """
    text = text.strip()
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)
