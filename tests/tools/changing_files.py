"""A file system in which a broker does something between two looks of a reader."""

from __future__ import annotations

from collections.abc import Callable

from logstore.os_host import SystemFile
from logstore.passing_files import PassingFileSystem


class ChangingFiles(PassingFileSystem):
    """Does `happens` once, in front of the first opening of a file whose path ends so."""

    def __init__(self, ending: str, happens: Callable[[], object]) -> None:
        self._ending = ending
        self._happens: Callable[[], object] | None = happens

    @property
    def has_happened(self) -> bool:
        """Tell whether it was done."""
        return self._happens is None

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SystemFile:
        """Open a file, as the system does."""
        if self._happens is not None and path.endswith(self._ending):
            happens, self._happens = self._happens, None
            happens()
        return super().open(path, create=create, writable=writable)
