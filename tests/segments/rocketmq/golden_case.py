"""One case of the golden RocketMQ data: a real broker's store, and what a client read of it."""

from __future__ import annotations

import atexit
import base64
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import attrs

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "rocketmq"
VERSIONS = ("4.9.8", "5.5.0")
_LEAN_QUEUES_MAX = 32
#: archives that hold several cases; each other archive holds the case of its own name
GROUPED = {
    "flush": ("flush-async", "flush-pool", "flush-sync"),
    "replication": ("replication-async", "replication-sync"),
    "wire": ("wire", "wire-cpp"),
}
ONLY_IN_5 = frozenset({"batch-queue", "compaction", "property-crc", "timer", "version-2"})
#: cases without one `store`: a pair of stores, or before and after each damage
WITHOUT_STORE = frozenset(
    {"crash", "crash-pool", "damage", "replication-async", "replication-sync"}
)


@attrs.frozen
class RecoveredPair:
    """A store before and after the real broker's recovery, and what a client read afterwards."""

    name: str
    before: Path
    after: Path
    expected: list[dict[str, Any]]
    recovery_log: str

    def copy_before(self, target: Path) -> Path:
        """Copy the store as the broker found it, for a test to recover."""
        return copy_of_store(self.before, target)


@attrs.frozen(slots=False)
class GoldenCase:
    """
    A case of one version, unpacked once into a temporary directory that nobody writes to.

    `expected` messages have their `body` as bytes; everything else is as in the JSON files.
    """

    name: str
    version: str

    @property
    def id(self) -> str:
        """What pytest calls it."""
        return f"{self.name}-{self.version}"

    @cached_property
    def folder(self) -> Path:
        """Where the case is unpacked. Never write there."""
        return _unpacked(_archive_of(self.name)) / self.id

    @property
    def store(self) -> Path:
        """The storePathRootDir as the broker left it. Never write there."""
        assert self.name not in WITHOUT_STORE, f"{self.id} has no single store"
        return self.folder / "store"

    @property
    def stores(self) -> Mapping[str, Path]:
        """Every cleanly stopped store of the case by its name below the folder."""
        found = sorted(path.parent for path in self.folder.rglob("checkpoint") if path.is_file())
        named = {str(path.relative_to(self.folder)): path for path in found}
        return {name: path for name, path in named.items() if not name.endswith("before")}

    @property
    def lean_store(self) -> Path:
        """
        The store without a thousand queues that nobody used; never write there, either.

        Every broker has a topic for benchmarks, each queue of which a conversion makes five files
        for.
        """
        return _lean(self.store)

    def copy_store(self, target: Path, name: str = "store") -> Path:
        """Copy a store of the case to `target` (made by this), sparse files as sparse ones."""
        return copy_of_store(self.folder / name, target)

    @cached_property
    def content(self) -> Mapping[str, Any]:
        """What case.json says."""
        content: Mapping[str, Any] = json.loads((self.folder / "case.json").read_text())
        return content

    @property
    def settings(self) -> dict[str, str]:
        """The broker's settings that are not Java's defaults, as `--set` would take them."""
        return {key: _text_of(value) for key, value in self.content["config"].items()}

    @cached_property
    def expected(self) -> list[dict[str, Any]]:
        """Every message that a consumer got, by topic, queue and queue offset."""
        return self.messages_in("base-expected.jsonl" if self.name == "damage" else None)

    @cached_property
    def sent(self) -> list[dict[str, Any]]:
        """Each client command with its answer, in order."""
        return _lines(self.folder / "sent.jsonl")

    @cached_property
    def pairs(self) -> list[RecoveredPair]:
        """The stores before and after recovery: one of a crash case, one for each damage."""
        folders = sorted(path.parent for path in self.folder.rglob("before") if path.is_dir())
        return [
            RecoveredPair(
                self.name if folder == self.folder else folder.name,
                folder / "before",
                folder / "after",
                messages_in(folder / "expected.jsonl"),
                (folder / "recovery.log").read_text(encoding="utf-8", errors="replace"),
            )
            for folder in folders
        ]

    def messages_in(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return the messages of an expected.jsonl of the case's folder."""
        return messages_in(self.folder / (name or "expected.jsonl"))

    @cached_property
    def transcripts(self) -> Mapping[str, list[dict[str, Any]]]:
        """Every frame between a client and the servers by the recording's name; `hex` is raw."""
        names = [path for path in self.folder.glob("*.jsonl") if path.name != "expected.jsonl"]
        return {
            path.stem: _lines(path)
            for path in sorted(names)
            if not path.name.endswith(".did.jsonl") and path.name != "sent.jsonl"
        }


def golden_cases(
    *names: str, version: str | None = None, without: tuple[str, ...] = ()
) -> list[GoldenCase]:
    """Return the cases of these names (all: none given), of one version or of both."""
    archives = sorted(path.name.removesuffix(".tar.xz") for path in GOLDEN.glob("*.tar.xz"))
    found = [name for archive in archives for name in GROUPED.get(archive, (archive,))]
    return [
        GoldenCase(name, one)
        for name in found
        for one in VERSIONS
        if (not names or name in names)
        and name not in without
        and version in (None, one)
        and not (name in ONLY_IN_5 and one == "4.9.8")
    ]


def stored_cases(*, without: tuple[str, ...] = ()) -> list[GoldenCase]:
    """Return the cases with one cleanly stopped `store`."""
    return golden_cases(without=(*WITHOUT_STORE, *without))


def copy_of_store(source: Path, target: Path) -> Path:
    """Copy a store; blocks of zeros become holes, so that a time wheel costs nothing."""
    shutil.copytree(source, target, copy_function=_copy_sparse)
    return target


def messages_in(path: Path) -> list[dict[str, Any]]:
    """Return the messages of an expected.jsonl by topic, queue and queue offset."""
    found = _lines(path)
    for message in found:
        # The Java client hands an empty body out as null.
        message["body"] = base64.b64decode(message["body"] or "")
    return sorted(found, key=lambda one: (one["topic"], one["queueId"], one["queueOffset"]))


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _text_of(value: object) -> str:
    """Return a setting as a properties file spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _archive_of(name: str) -> str:
    """Return the archive that holds a case."""
    return next((archive for archive, names in GROUPED.items() if name in names), name)


@cache
def _unpacked(archive: str) -> Path:
    """Unpack an archive once a process; it goes when the process ends."""
    target = Path(tempfile.mkdtemp(prefix=f"golden-rocketmq-{archive}-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    with tarfile.open(GOLDEN / f"{archive}.tar.xz") as tar:
        tar.extractall(target, filter="data")
    return target


@cache
def _lean(store: Path) -> Path:
    """Link to the files of a store but for its table of topics, of which none has many queues."""
    lean = Path(tempfile.mkdtemp(prefix="golden-rocketmq-lean-"), "store")
    atexit.register(shutil.rmtree, lean.parent, ignore_errors=True)
    shutil.copytree(store, lean, copy_function=os.link)
    table = json.loads((store / "config" / "topics.json").read_text(encoding="utf-8"))
    for topic in table["topicConfigTable"].values():
        for count in ("readQueueNums", "writeQueueNums"):
            topic[count] = min(topic[count], _LEAN_QUEUES_MAX)
    (lean / "config" / "topics.json").unlink()  # it is the store's own
    (lean / "config" / "topics.json").write_text(json.dumps(table), encoding="utf-8")
    return lean


def _copy_sparse(source: str, target: str) -> str:
    """Copy a file block by block without its zeros; the copy is new, so it has not expired."""
    block_bytes = 1 << 20
    zeros = bytes(block_bytes)
    with Path(source).open("rb") as read, Path(target).open("wb") as written:
        while block := read.read(block_bytes):
            if len(block) == block_bytes and block == zeros:
                written.seek(block_bytes, 1)
            else:
                written.write(block)
        written.truncate()
    return target
