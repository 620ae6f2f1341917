"""
Where a query starts and where it ends, said by offsets or by times.

As in Spark's Kafka source one time for all goes over times by partition, and these over offsets.
What is said of some partitions only leaves the others as they are without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from logstore.compat.spark.option_values import (
    OptionError,
    Options,
    json_object,
    number,
    one_of,
    text_of,
)

EARLIEST, LATEST = -2, -1
_WORDS = {"earliest": EARLIEST, "latest": LATEST}
#: what a start by time means where no record is that young; the first unless told
_STRATEGIES = ("latest", "error")

Places = Mapping[tuple[str, int], int]


@attrs.frozen
class Bound:
    """
    Where reading starts or ends: for all partitions, or one by one.

    `everywhere` is EARLIEST or LATEST; `offsets` by (topic, partition) win over it. `timestamp_ms`
    and `timestamps` stand for the first offset whose record is at least that young; where there is
    none they stand for the end, or `needs_match` makes that an error.
    """

    everywhere: int
    offsets: Places = attrs.field(factory=dict[tuple[str, int], int])
    timestamp_ms: int | None = None
    timestamps: Places = attrs.field(factory=dict[tuple[str, int], int])
    needs_match: bool = False

    def time_of(self, topic: str, partition: int) -> int | None:
        """Return the time that bounds the partition, if one does."""
        return self.timestamps.get((topic, partition), self.timestamp_ms)

    def unmatched(self, topic: str, partition: int, end_offset: int) -> int:
        """
        Return what a time means that no record of the partition is young enough for.

        Raises:
            OptionError: that is an error, by ``startingOffsetsByTimestampStrategy``.

        """
        if self.needs_match:
            raise OptionError(
                "startingOffsetsByTimestamp" if self.timestamps else "startingTimestamp",
                self.time_of(topic, partition),
                f"is behind the youngest record of {topic}-{partition}, and "
                "startingOffsetsByTimestampStrategy is error; latest reads nothing there",
            )
        return end_offset

    def check_named(self, word: str, wanted: Iterable[tuple[str, int]]) -> None:
        """
        Check that what is said of single partitions is said of ones that are read.

        Raises:
            OptionError: a partition that it names is not among them.

        """
        known = set(wanted)
        for name, places in (("Offsets", self.offsets), ("OffsetsByTimestamp", self.timestamps)):
            for topic, index in sorted(places.keys() - known):
                raise OptionError(f"{word}{name}", f"{topic}-{index}", "is not what is read")


def starting(options: Options, *, is_stream: bool = False) -> Bound:
    """
    Read where a query starts; a stream may do so at the latest offsets, and does unless told.

    Raises:
        OptionError: a value is not allowed.

    """
    needs_match = one_of(options, "startingOffsetsByTimestampStrategy", _STRATEGIES) == "error"
    default = LATEST if is_stream else EARLIEST
    bound = attrs.evolve(_bound(options, "starting", default), needs_match=needs_match)
    if not is_stream and (place := _place_of(bound, LATEST)):
        raise OptionError(
            "startingOffsets", place, "starts behind everything; say earliest, or offsets"
        )
    return bound


def ending(options: Options) -> Bound:
    """
    Read where a query ends.

    Raises:
        OptionError: a value is not allowed.

    """
    bound = _bound(options, "ending", LATEST)
    if place := _place_of(bound, EARLIEST):
        raise OptionError("endingOffsets", place, "ends before anything; say latest, or offsets")
    return bound


def check_order(start: Bound, end: Bound) -> None:
    """
    Check that nothing is said to end before it starts.

    Raises:
        OptionError: a partition's end lies before its start, both being offsets or both times.

    """
    for key, place in start.offsets.items():
        _check_order("endingOffsets", key, place, end.offsets.get(key, LATEST))
    for key, place in start.timestamps.items():
        _check_order("endingOffsetsByTimestamp", key, place, end.timestamps.get(key, LATEST))
    if start.timestamp_ms is not None and end.timestamp_ms is not None:
        _check_order("endingTimestamp", None, start.timestamp_ms, end.timestamp_ms)


def _check_order(name: str, key: tuple[str, int] | None, start: int, end: int) -> None:
    if 0 <= end < start:
        where = "" if key is None else f" of {key[0]}-{key[1]}"
        raise OptionError(name, end, f"lies before the start{where}, {start}")


def _place_of(bound: Bound, place: int) -> str:
    """Return where a bound says that word, an empty text where nowhere."""
    if bound.timestamp_ms is not None or bound.timestamps:
        return ""
    if bound.everywhere == place:
        return next(word for word, meant in _WORDS.items() if meant == place)
    found = (f"{topic}-{index}: {place}" for (topic, index), at in bound.offsets.items()
             if at == place)  # fmt: skip
    return next(found, "")


def _bound(options: Options, word: str, default: int) -> Bound:
    """Read what says where to start or to end; the most general time wins, as in Spark."""
    otherwise = EARLIEST if word == "starting" else LATEST
    if f"{word}timestamp" in options:
        return Bound(otherwise, timestamp_ms=number(options, f"{word}Timestamp", 0, 0))
    name = f"{word}OffsetsByTimestamp"
    if (text := text_of(options, name)) is not None:
        return Bound(otherwise, timestamps=_places(name, text, 0))
    name = f"{word}Offsets"
    if (text := text_of(options, name)) is None:
        return Bound(default)
    if text.lower() in _WORDS:
        return Bound(_WORDS[text.lower()])
    return Bound(otherwise, _places(name, text, EARLIEST))


def _places(name: str, text: str, least: int) -> dict[tuple[str, int], int]:
    found = json_object(name, text)
    try:
        places = {
            (topic, int(index)): int(place)
            for topic, by_index in found.items()
            for index, place in by_index.items()
        }
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError(name, text, 'must look like {"topic": {"0": 23, "1": -2}}') from error
    if min(places.values(), default=least) < least:
        wanted = "is neither an offset nor -1 (latest) nor -2 (earliest)" if least else "is no time"
        raise OptionError(name, min(places.values()), wanted)
    return places
