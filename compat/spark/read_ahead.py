"""A file whose next megabytes the system is asked to fetch before they are looked at."""

from __future__ import annotations

import os

from logstore.host import File

_STEP_BYTES = 8 * 1024 * 1024
#: what lies between looks that are nearer to each other a disk hands over as fast as it skips it
_GAP_BYTES_MAX = 64 * 1024


class ReadAhead:
    """
    Asks for what a walk over a file, with small looks at places far apart, comes to next.

    The system takes such looks for random ones, and fetches each when it comes: from a disk, not
    from its cache, that is five times as slow. What is in the cache costs nothing to ask for.
    """

    def __init__(self, file: File, position: int, end_position: int) -> None:
        self._file = file
        self._asked_position = position
        self._end_position = end_position

    def look(self, position: int, gap_bytes: int) -> None:
        """Say where the walk is, and how far the next look is from there."""
        if gap_bytes > _GAP_BYTES_MAX or not hasattr(os, "posix_fadvise"):
            return
        while self._asked_position < min(position + 2 * _STEP_BYTES, self._end_position):
            start = max(self._asked_position, position)
            size_bytes = min(_STEP_BYTES, self._end_position - start)
            descriptor = self._file.fileno()
            if descriptor is not None:
                os.posix_fadvise(descriptor, start, size_bytes, os.POSIX_FADV_WILLNEED)
            self._asked_position = start + size_bytes
