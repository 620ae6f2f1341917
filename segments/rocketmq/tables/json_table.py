"""
A table that stands in one JSON file with a backup beside it.

Written whole: first ``<name>.tmp``, synced; then the file becomes ``<name>.bak`` and the new one
takes its place. Whenever the power goes, either the file or its backup is whole. (5.x writes the
file in place after it moved the old one, 4.x does not sync; the files that remain are the same.)

Source: ``ConfigManager``, ``MixAll.string2File``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from logstore.errors import CorruptFileError
from logstore.host import FileSystem, Host, read_file
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.java_json import JsonError, format_json, parse_json
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError, as_object


class TableWrite:
    """A table's new text on its way to the disk; :meth:`run` may run in any thread."""

    __slots__ = ("_data", "_fs", "_path", "_to_keep_aside")

    def __init__(self, fs: FileSystem, path: str, data: bytes, *, to_keep_aside: bool) -> None:
        self._fs = fs
        self._path = path
        self._data = data
        self._to_keep_aside = to_keep_aside

    def run(self) -> None:
        """Write the file and keep the old one as ``.bak``; durable on return. Raises OSError."""
        fs, path = self._fs, self._path
        directory = path.rpartition("/")[0]
        if not fs.exists(directory):
            fs.make_directory(directory)
            fs.sync_directory(directory.rpartition("/")[0] or "/")
        temporary = f"{path}.tmp"
        file = fs.open(temporary, create=True)
        try:
            file.truncate(0)
            file.write(0, self._data)
            file.sync()
        finally:
            file.close()
        if fs.exists(path):
            # A file that could not be read must not take the place of the backup that could.
            fs.rename(path, f"{path}.damaged" if self._to_keep_aside else f"{path}.bak")
        fs.rename(temporary, path)
        fs.sync_directory(directory)


class JsonTable(ABC):
    """
    A table in memory and its file ``config/<name>.json``, replaced as a whole by :meth:`persist`.

    `is_dirty` says that something changed since the last load or persist. `release` decides how
    the file is written; either release's is read.
    """

    file_name: ClassVar[str]

    def __init__(self, host: Host, directory: str, release: Release = Release.V5) -> None:
        self.host = host
        self.release = release
        #: the file's path; `directory` is the store's ``config``
        self.path = f"{directory}/{self.file_name}"
        self.is_dirty = False
        self._is_file_damaged = False

    def load(self) -> bool:
        """
        Read the file, or its backup if the file is missing, empty or damaged.

        Returns whether either was there; a table without a file is empty. A damaged file stays,
        and is kept aside as ``.damaged`` by the next persist.

        Raises:
            CorruptFileError: both are damaged, or the file is and there is no backup.

        """
        self._is_file_damaged = False
        reasons: list[str] = []
        for path in (self.path, f"{self.path}.bak"):
            try:
                data = read_file(self.host.fs, path)
            except FileNotFoundError:
                continue
            if not any(data):  # or zeros: a power loss leaves them of what was not synced
                self._is_file_damaged = self._is_file_damaged or path == self.path
                continue
            try:
                self.decode(data)
            except (JsonError, JsonTypeError) as error:
                reasons.append(f"{path.rpartition('/')[2]}: {error}")
                self._is_file_damaged = True
                continue
            self.is_dirty = path != self.path
            return True
        if reasons:
            remedy = "mend the file, or move it away to start with an empty table"
            raise CorruptFileError(self.path, f"{'; '.join(reasons)}; {remedy}")
        return False

    def decode(self, data: bytes) -> None:
        """
        Replace the content by that of a file's or a master's text.

        As in Java, bytes that are no UTF-8 spoil the name that they stand in and nothing else.

        Raises:
            JsonError: the text is no JSON.
            JsonTypeError: a value is not of its field's type. The content is as before.

        """
        self.take_json(as_object(parse_json(data.decode(errors="replace"))))

    def begin_persist(self) -> TableWrite:
        """
        Return the write of the content as it is now; :meth:`end_persist` follows its run.

        One at a time. What changes meanwhile makes the table dirty again.
        """
        self.is_dirty = False
        data = self.encoded(is_pretty=True)
        return TableWrite(self.host.fs, self.path, data, to_keep_aside=self._is_file_damaged)

    def end_persist(self, error: OSError | None = None) -> None:
        """Say that the write is through, or why it failed: then the table is dirty again."""
        if error is None:
            self._is_file_damaged = False
        else:
            self.is_dirty = True

    def persist(self) -> None:
        """Write the file and keep the old one as ``.bak``; durable on return. Raises OSError."""
        write = self.begin_persist()
        try:
            write.run()
        except OSError as error:
            self.end_persist(error)
            raise
        self.end_persist()

    def persist_if_dirty(self) -> bool:
        """Persist if something changed; tell whether it had. Raises OSError."""
        if not self.is_dirty:
            return False
        self.persist()
        return True

    @abstractmethod
    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it, in its order."""

    @abstractmethod
    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""

    def encoded(self, *, is_pretty: bool = False) -> bytes:
        """Return the text that Java writes: for the file if pretty, else for remoting bodies."""
        return format_json(self.to_json(), self.release, is_pretty=is_pretty)
