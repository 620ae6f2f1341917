"""A file whose next looks the system is asked to prepare before they come."""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence

from logstore.compat.spark.work_unit import WorkUnit
from logstore.host import File, FileSystem, read_file

_STEP_BYTES = 8 * 1024 * 1024
#: what lies between looks that are nearer to each other a disk hands over as fast as it skips it
_GAP_BYTES_MAX = 64 * 1024
#: where looks are farther from each other than that, and their places known, only these are fetched
_PLACE_GAP_BYTES_MIN = 8 * 1024
_PLACES_AHEAD = 512
_LOG, _INDEX = ".log", ".index"


class ReadAhead:
    """
    Asks for what a walk over a file, with small looks at places far apart, comes to next.

    The system takes such looks for random ones, and fetches each when it comes: from a disk, not
    from its cache, that is five times as slow. With the `places` of the looks only the pages that
    they are on are asked for, some hundred ahead; without, all that lies between. What is in the
    cache costs nothing to ask for.
    """

    def __init__(
        self,
        file: File,
        position: int,
        end_position: int,
        places: Sequence[int] = (),
        look_bytes: int = 1,
    ) -> None:
        descriptor = file.fileno() if hasattr(os, "posix_fadvise") else None
        self._descriptor = -1 if descriptor is None else descriptor
        self._asked_position = position
        self._end_position = end_position
        self._places = places
        self._asked_count = self._passed_count = 0
        self._look_bytes = look_bytes
        if places and self._descriptor >= 0:
            # or the system fetches more around each of them
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def look(self, position: int, gap_bytes: int) -> None:
        """Say where the walk is, and how far the next look is from there."""
        if self._descriptor < 0:
            return
        if self._places:
            self._ask_for_places(position)
        elif gap_bytes <= _GAP_BYTES_MAX:
            self._ask_for_all(position)

    def _ask_for_places(self, position: int) -> None:
        places, asked, passed = self._places, self._asked_count, self._passed_count
        while passed < len(places) and places[passed] < position:
            passed += 1
        self._passed_count = passed
        if asked > passed + _PLACES_AHEAD // 2:
            return
        end = min(passed + _PLACES_AHEAD, len(places))
        for index in range(max(asked, passed), end):
            os.posix_fadvise(
                self._descriptor, places[index], self._look_bytes, os.POSIX_FADV_WILLNEED
            )
        self._asked_count = max(asked, end)

    def _ask_for_all(self, position: int) -> None:
        while self._asked_position < min(position + 2 * _STEP_BYTES, self._end_position):
            start = max(self._asked_position, position)
            size_bytes = min(_STEP_BYTES, self._end_position - start)
            os.posix_fadvise(self._descriptor, start, size_bytes, os.POSIX_FADV_WILLNEED)
            self._asked_position = start + size_bytes


def indexed_places(fs: FileSystem, unit: WorkUnit) -> Sequence[int]:
    """
    Return where batches of a unit begin, as the offset index says; none where they are small.

    It has every batch that follows on 4 KiB or more (``index.interval.bytes``). Nothing depends on
    its being right: places are only where the system is asked to look.
    """
    path = unit.path.removesuffix(_LOG) + _INDEX
    if not fs.exists(path):
        return ()
    entries = array("i")
    data = read_file(fs, path)
    entries.frombytes(data[: len(data) - len(data) % (2 * entries.itemsize)])
    if sys.byteorder == "little":
        entries.byteswap()
    positions = entries[1::2]
    # A file that is not sealed ends in zeros.
    end = len(positions)
    while end and not positions[end - 1]:
        end -= 1
    first = bisect_left(positions, unit.position, 0, end)
    last = bisect_left(positions, unit.end_position, first, end)
    places = positions[first:last]
    is_sparse = len(places) * _PLACE_GAP_BYTES_MIN <= unit.size_bytes
    return places if is_sparse else ()
