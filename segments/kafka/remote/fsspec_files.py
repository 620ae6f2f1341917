"""
Any ``fsspec`` path as a file system of :mod:`logstore.host`: object stores, archives, memory.

What readers of files need is all there, by ranged reads. Writing is what object stores can do: a
new file is written from its start to its end and is there, whole, once it is closed. There are no
locks and no syncs. fsspec is the extra ``remote``; it is imported on first use.
"""

from __future__ import annotations

import errno
import importlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

from logstore.host import DirectoryEntry, Lock, VolumeSpace

if TYPE_CHECKING:
    from typing_extensions import Buffer


def is_url(location: str) -> bool:
    """Tell whether a location names its file system, as ``s3://bucket/path`` does."""
    return "://" in location


def open_url(location: str, **options: object) -> tuple[FsspecFiles, str]:
    """
    Return the file system of a URL and the path in it; `options` are the file system's own.

    Raises ImportError where fsspec, or what it needs for that kind of URL, is not installed.
    """
    core = importlib.import_module("fsspec.core")
    found, path = core.url_to_fs(location, **options)
    return FsspecFiles(found), path.rstrip("/")


class FsspecFile:
    """A file that is read by ranges, or a new one that is written front to back."""

    def __init__(self, fs: Any, path: str, *, is_new: bool) -> None:
        self.path = path
        self._fs = fs
        self._size_bytes = 0 if is_new else int(fs.size(path))
        self._target: Any = fs.open(path, "wb") if is_new else None

    def size(self) -> int:
        """Return the length in bytes, as it was when the file was opened, or as written."""
        return self._size_bytes

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`, with one request."""
        end = min(position + size_bytes, self._size_bytes)
        if end <= position:
            return b""
        data: bytes = self._fs.cat_file(self.path, start=position, end=end)
        return data

    def read_into(self, position: int, target: memoryview) -> int:
        """Fill `target` from `position`; return how many bytes there were."""
        data = self.read(position, len(target))
        target[: len(data)] = data
        return len(data)

    def write(self, position: int, data: Buffer) -> None:
        """Write on where the file ends; OSError anywhere else."""
        if self._target is None or position != self._size_bytes:
            raise OSError(errno.ENOTSUP, "an object is written once, front to back", self.path)
        view = memoryview(data).cast("B")
        self._target.write(view)
        self._size_bytes += len(view)

    def truncate(self, size_bytes: int) -> None:
        """Do nothing where the file has that size already; OSError otherwise."""
        if size_bytes != self._size_bytes:
            raise OSError(errno.ENOTSUP, "an object cannot be cut", self.path)

    def next_data(self, position: int) -> int | None:
        """Return the position itself: objects have no holes. None at the end."""
        return position if position < self._size_bytes else None

    def sync(self) -> None:
        """Do nothing: the file is there once it is closed."""

    def fileno(self) -> int | None:
        """Return None: there is no descriptor."""
        return None

    def close(self) -> None:
        """Finish a file that was written."""
        target, self._target = self._target, None
        if target is not None:
            target.close()


class FsspecFiles:
    """A file system of fsspec. Implements :class:`logstore.host.FileSystem`."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> FsspecFile:
        """Open a file for reading, or with `create` a new one, in place of any old one."""
        if create:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        elif writable:
            raise OSError(errno.ENOTSUP, "an object cannot be written to", path)
        return FsspecFile(self._fs, path, is_new=create)

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory of that name is there."""
        return bool(self._fs.exists(path))

    def is_directory(self, path: str) -> bool:
        """Tell whether `path` is a directory, or what stands for one."""
        return bool(self._fs.isdir(path))

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """Return the entries, sorted by name, as they are now."""
        self._fs.invalidate_cache(path)
        found: list[DirectoryEntry] = []
        for entry in self._fs.ls(path, detail=True):
            name: str = entry["name"].rstrip("/").rpartition("/")[2]
            is_directory = entry["type"] == "directory"
            size_bytes = 0 if is_directory else int(entry["size"] or 0)
            if name and entry["name"].rstrip("/") != path:  # some list the directory itself
                found.append(DirectoryEntry(name, is_directory, size_bytes))
        return sorted(found, key=lambda entry: entry.name)

    def make_directory(self, path: str) -> None:
        """Create the directory and its missing parents, where there is such a thing."""
        self._fs.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Move, replacing `target`; object stores copy and remove."""
        self._fs.mv(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._fs.rm_file(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with all that is in it; fine if it is not there."""
        if self._fs.exists(path):
            self._fs.rm(path, recursive=True)

    def sync_directory(self, path: str) -> None:
        """Do nothing: names last as soon as they are there."""

    def modified_ms(self, path: str) -> int:
        """Return when the file was last written, in ms since the epoch."""
        when: datetime = self._fs.modified(path)
        return int(when.timestamp() * 1000)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Raise OSError: an object's time is not the writer's to choose."""
        del modified_ms
        raise OSError(errno.ENOTSUP, "the time of a file cannot be set", path)

    def volume_space(self, path: str) -> VolumeSpace:
        """Raise OSError: nobody knows how much an object store holds."""
        raise OSError(errno.ENOTSUP, "the size of the volume is not known", path)

    def lock(self, path: str) -> Lock:
        """Raise OSError: there are no locks."""
        raise OSError(errno.ENOTSUP, "there are no locks", path)
