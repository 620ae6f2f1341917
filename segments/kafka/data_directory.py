"""
A data directory (one entry of ``log.dirs``): whose it is, who has it, which directories are in it.

What is not one, or is another node's, is refused before anything in it changes. While somebody
writes to it ``.lock`` is locked, as Kafka does it, so that the real broker is kept out too.
"""

from __future__ import annotations

from collections.abc import Callable

from logstore.errors import CorruptFileError, ForeignDirectoryError, LockedError
from logstore.host import FileSystem, Host, Lock
from logstore.segments.kafka.directory_name import (
    METADATA_DIRECTORY,
    DirectoryNameError,
    PartitionDirectory,
    Role,
    is_skipped_directory,
    parse_directory_name,
)
from logstore.segments.kafka.meta_properties import FILE_NAME as META_PROPERTIES
from logstore.segments.kafka.meta_properties import MetaProperties
from logstore.segments.kafka.topic import SETTINGS_FILE

LOCK_FILE = ".lock"
#: of a directory that names none
DEFAULT_NODE_ID = 1
#: ends of the names of files beside the partitions
_FILES_BESIDE = ("-checkpoint", ".checkpoint", SETTINGS_FILE)
_UNFINISHED_META = f"{META_PROPERTIES}.tmp"


def named_directories(fs: FileSystem, text: str) -> list[str]:
    """Return what `text` names: one directory, or several as ``log.dirs`` does."""
    if fs.exists(text):  # it may have a comma in its name
        return [text]
    return [part for one in text.split(",") if (part := one.strip())] or [text]


class DataDirectory:
    """
    A data directory in use: locked, unless it is only read.

    A new one is made, for the node `node_id`; without `node_id` any node's is fine.

    Raises, on opening:
        ForeignDirectoryError: it is not a Kafka data directory, another node's, or cannot be used
            at all.
        LockedError: another broker has it.
        CorruptFileError: its ``meta.properties`` cannot be understood.
    """

    def __init__(
        self, host: Host, path: str, *, is_writable: bool = True, node_id: int | None = None
    ) -> None:
        self.host = host
        self.path = path
        self.is_writable = is_writable
        self._condemned: list[tuple[float, str]] = []
        #: copies of partitions that were being made here, to stand for them once they are whole
        self.futures: list[PartitionDirectory] = []
        self._lock: Lock | None = None
        self._check()
        #: whether somebody has used the directory, and keeps the cluster's metadata elsewhere
        self.lacks_metadata = host.fs.exists(f"{path}/{META_PROPERTIES}") and not host.fs.exists(
            f"{path}/{METADATA_DIRECTORY}"
        )
        if is_writable:
            self._take_lock()
        try:
            #: None where the directory has none and is only read
            self.meta = self._load_meta(node_id)
        except BaseException:
            self.release()
            raise
        named = None if self.meta is None else self.meta.node_id
        asked = DEFAULT_NODE_ID if node_id is None else node_id
        #: the node that the directory belongs to
        self.node_id = asked if named is None else named

    # opening

    def _check(self) -> None:
        fs, path = self.host.fs, self.path
        if not fs.exists(path):
            if not self.is_writable:
                raise ForeignDirectoryError(f"{path}: there is no such directory")
            try:
                self._make()
            except OSError as error:
                raise ForeignDirectoryError(
                    f"{path}: cannot be created: {error.strerror}; name a directory "
                    "that you may write to"
                ) from error
        if not fs.is_directory(path):
            raise ForeignDirectoryError(f"{path}: is a file; name a directory")
        if fs.exists(f"{path}/{META_PROPERTIES}"):
            return
        for entry in fs.list_directory(path):
            if entry.name.startswith(".") or entry.name.endswith(_FILES_BESIDE):
                continue
            if entry.name == _UNFINISHED_META:  # a power loss ended the very first start
                continue
            if entry.is_directory and is_known_directory(entry.name):
                continue
            raise ForeignDirectoryError(
                f"{path}/{entry.name}: does not belong into a Kafka data directory; "
                "name an empty directory, or one that Kafka wrote"
            )

    def _make(self) -> None:
        """Create the directory and what is missing above it, so that a power loss keeps both."""
        fs, path = self.host.fs, self.path
        parents: list[str] = []
        while path and not fs.exists(path):
            path = path.rstrip("/").rpartition("/")[0]
            parents.append(path or ("/" if self.path.startswith("/") else "."))
        fs.make_directory(self.path)
        for parent in parents:
            fs.sync_directory(parent)

    def _take_lock(self) -> None:
        path = f"{self.path}/{LOCK_FILE}"
        try:
            self._lock = self.host.fs.lock(path)
        except BlockingIOError as error:
            raise LockedError(
                f"{path}: another broker serves this directory; stop it or name another directory"
            ) from error
        except OSError as error:
            raise ForeignDirectoryError(
                f"{path}: cannot be written: {error.strerror}; the directory must be writable"
            ) from error

    def _load_meta(self, node_id: int | None) -> MetaProperties | None:
        fs, path = self.host.fs, self.path
        if fs.exists(f"{path}/{META_PROPERTIES}"):
            try:
                meta = MetaProperties.read(fs, path)
            except CorruptFileError as error:
                remedy = (
                    "restore it, or move it away: a start then writes another, with new ids of "
                    "cluster and directory, for the node that node.id names"
                )
                raise CorruptFileError(error.path, f"{error.reason}; {remedy}") from None
            if node_id is not None:
                meta.check_node_id(path, node_id)
            return meta
        if not self.is_writable:
            return None
        new_id = DEFAULT_NODE_ID if node_id is None else node_id
        meta = MetaProperties.generate(new_id, self.host.rng)
        meta.write(fs, path, self.host.clock.wall_ms())
        return meta

    @property
    def is_zookeepers(self) -> bool:
        """Whether it is of ZooKeeper's time: its ``meta.properties`` are not those of KRaft."""
        return self.meta is not None and self.meta.version == 0

    def upgrade(self) -> None:
        """Give a directory of ZooKeeper's time the ``meta.properties`` of KRaft."""
        meta = self.meta
        if meta is None or meta.version > 0:
            return
        fresh = MetaProperties.generate(
            self.node_id, self.host.rng, cluster_id=meta.cluster_id or None
        )
        self.meta = fresh._replace(directory_id=meta.directory_id or fresh.directory_id)
        self.meta.write(self.host.fs, self.path, self.host.clock.wall_ms())

    # what is in it

    def partitions(self) -> list[PartitionDirectory]:
        """
        Return the partitions that are served, by directory name.

        What is there of deleted topics, because their broker stopped too early, is condemned.

        Raises:
            ForeignDirectoryError: a directory is none of a partition.

        """
        now_ms = self.host.clock.monotonic_ms()
        found: list[PartitionDirectory] = []
        for entry in self.host.fs.list_directory(self.path):
            if not entry.is_directory or is_skipped_directory(entry.name):
                continue
            try:
                place = parse_directory_name(entry.name)
            except DirectoryNameError as error:
                raise ForeignDirectoryError(
                    f"{self.path}/{entry.name}: {error}; a data directory holds partitions only"
                ) from error
            if place.is_live:
                if place.name != entry.name:  # such as t-00, beside which there may be a t-0
                    raise ForeignDirectoryError(
                        f"{self.path}/{entry.name}: partition {place.partition} of a topic stands "
                        f"in {place.name}; rename it, or move it away"
                    )
                found.append(place)
            elif place.role is Role.DELETE and self.is_writable:
                self._condemned.append((now_ms, f"{self.path}/{entry.name}"))
            elif place.role is Role.FUTURE:
                self.futures.append(place)
        return found

    def promote(self, future: PartitionDirectory) -> PartitionDirectory:
        """Let a partition's copy stand for it, durably; return what it is now."""
        place = PartitionDirectory(future.topic, future.partition)
        self.host.fs.rename(f"{self.path}/{future.name}", f"{self.path}/{place.name}")
        self.host.fs.sync_directory(self.path)
        self.futures.remove(future)
        return place

    def path_of(self, topic: str, index: int) -> str:
        """Return the path of a partition's directory."""
        return f"{self.path}/{topic}-{index}"

    def condemn(self, topic: str, index: int, delay_ms: int) -> None:
        """Take a partition's directory away: renamed at once, removed after the delay."""
        place = PartitionDirectory(topic, index)
        unique = self.host.rng.getrandbits(128).to_bytes(16, "big")
        condemned = f"{self.path}/{place.deleted_name(unique.hex())}"
        self.host.fs.rename(f"{self.path}/{place.name}", condemned)
        self._condemned.append((self.host.clock.monotonic_ms() + delay_ms, condemned))

    def purging(self, *, everything: bool = False) -> Callable[[], None] | None:
        """Return what removes, in any thread, the condemned directories that are due, if any."""
        now_ms = self.host.clock.monotonic_ms()
        due = [entry for entry in self._condemned if everything or entry[0] <= now_ms]
        for entry in due:
            self._condemned.remove(entry)
        if not due:
            return None

        def remove() -> None:
            for _, path in due:
                self.host.fs.remove_directory(path)

        return remove

    def release(self) -> None:
        """Let others in."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def is_known_directory(name: str) -> bool:
    """Tell whether a directory of that name may be in a data directory."""
    if is_skipped_directory(name):
        return True
    try:
        parse_directory_name(name)
    except DirectoryNameError:
        return False
    return True
