"""Files of a message index on their way to the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.host import FileSystem
    from logstore.segments.rocketmq.index.index_file import IndexFile


class IndexFlush:
    """Files to sync. :meth:`run` may run in any thread; hand it to `end_flush` afterwards."""

    __slots__ = ("_directory", "_failed_paths", "_fs", "files")

    def __init__(
        self, fs: FileSystem, directory: str, files: list[IndexFile], failed_paths: set[str]
    ) -> None:
        self.files = files
        self._fs = fs
        self._directory = directory
        #: those of files of which a sync failed, kept by the index
        self._failed_paths = failed_paths

    def run(self) -> None:
        """Sync the files and their names. Raises OSError."""
        for file in self.files:
            try:
                file.sync()
            except OSError:
                self._failed_paths.add(file.path)
                raise
        if self.files:
            self._fs.sync_directory(self._directory)
