"""``logstore reindex`` of a RocketMQ store."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from logstore.os_host import system_host
from logstore.segments.rocketmq.opening.store_lock import LOCK_NAME
from logstore.tools.inspection.kept_out import kept_out
from logstore.tools.inspection.late_progress import LateProgress
from logstore.tools.inspection.rebuilding.outcome import Rebuilt
from logstore.tools.inspection.rocketmq.rebuilding.store_rebuild import StoreRebuild
from logstore.tools.inspection.rocketmq.stored_store import StoredStore


def rebuilt_files(
    directory: str, settings: dict[str, str], *, is_changing: bool
) -> Iterator[Rebuilt]:
    """Yield what became of every consume queue and index file, once it is right."""
    host = system_host()
    with (
        kept_out(host.fs, directory, f"{directory}/{LOCK_NAME}", only_reads=not is_changing),
        _work_folder(is_changing=is_changing) as folder,
    ):
        store = StoredStore(host.fs, directory, settings)
        rebuild = StoreRebuild(host, store, is_changing, folder)
        with LateProgress("reindexing", rebuild.size_bytes) as progress:
            yield from rebuild.run(progress.advance)


@contextmanager
def _work_folder(*, is_changing: bool) -> Generator[str | None]:
    """Yield where files are made first: in the store, or, if it stays as it is, nowhere near it."""
    if is_changing:
        yield None
        return
    with TemporaryDirectory(prefix="logstore-reindex-") as folder:
        yield f"{folder}/store"
