"""A temporary directory of this process alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
import weakref


class OwnFolder:
    """
    Made at once; it goes with :meth:`remove`, or when the process ends.

    Children that were forked meanwhile leave it alone when they end, unlike those that have a copy
    of a ``TemporaryDirectory``.
    """

    def __init__(self, prefix: str) -> None:
        self.name = tempfile.mkdtemp(prefix=prefix)
        self._process_id = os.getpid()
        self._end = weakref.finalize(self, _forgotten, self.name, self._process_id)

    def remove(self) -> None:
        """Remove it with all that is in it, if it is this process's and still there."""
        if self._end.detach() is not None and os.getpid() == self._process_id:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self.name)


def _forgotten(path: str, process_id: int) -> None:
    if os.getpid() == process_id:
        shutil.rmtree(path, ignore_errors=True)
        warnings.warn(f"{path} was in use to the end; stop its broker", ResourceWarning)  # noqa: B028 - nobody calls
