"""What is in a store: whose it is, how it was left, its commit log, its queues."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from logstore.host import FileSystem
from logstore.tools.inspection.facts import Problem
from logstore.tools.inspection.known_names import no_such_topic
from logstore.tools.inspection.rocketmq.log_end import FileEnd, log_ends
from logstore.tools.inspection.rocketmq.queue_span import QueueSpan, queue_span
from logstore.tools.inspection.rocketmq.stored_files import StoredFiles
from logstore.tools.inspection.rocketmq.stored_store import StoredQueue, StoredStore

Progress = Callable[[int, int], None]


@attrs.frozen
class QueueView:
    """One queue and what of it is there."""

    queue: StoredQueue
    span: QueueSpan


@attrs.frozen
class StoreSurvey:
    """
    What a store holds.

    `state` is "clean" or "unclean" after the last stop, "in use" while a broker has the lock; then
    `process` says which. `min_physical_offset` and `max_physical_offset` bound the commit log.
    `rocksdb_folder` is where its queues stand if they are no files.
    """

    directory: str
    release: str
    state: str
    process: int | None
    log_files: tuple[FileEnd, ...]
    queues: tuple[QueueView, ...]
    index_files: tuple[str, ...]
    problems: tuple[Problem, ...]
    topics_without_queues: tuple[str, ...] = ()
    rocksdb_folder: str | None = None

    @property
    def min_physical_offset(self) -> int:
        """Where the commit log begins."""
        return self.log_files[0].file.base if self.log_files else 0

    @property
    def max_physical_offset(self) -> int:
        """Where the next message would stand."""
        holding = [end for end in self.log_files if end.position]
        return holding[-1].physical_offset if holding else self.min_physical_offset

    @property
    def size_bytes(self) -> int:
        """Length of the commit log's files."""
        return sum(end.file.size_bytes for end in self.log_files)


def survey_store(
    fs: FileSystem,
    directory: str,
    topic: str | None = None,
    progress: Progress | None = None,
) -> StoreSurvey:
    """Look at a store without writing or locking; `progress` is told (done, all) queues."""
    store = StoredStore(fs, directory)
    if topic is not None and store.rocksdb_folder is None:
        _check_topic(store, topic)
    ends = tuple(log_ends(store.commit_log))
    problems = _oddities(directory, store.commit_log)
    log_end = max((end.physical_offset for end in ends if end.position), default=0)
    problems += [end.problem for end in ends if end.problem is not None]
    wanted = [queue for key, queue in store.queues.items() if topic in (None, key[0])]
    views: list[QueueView] = []
    for number, queue in enumerate(wanted):
        views.append(QueueView(queue, queue_span(queue, store.commit_log.start, log_end)))
        problems += _oddities(directory, queue.files)
        queue.files.close()
        if progress is not None:
            progress(number + 1, len(wanted))
    store.commit_log.close()
    state = "clean" if store.was_clean else "unclean"
    seen = {view.queue.topic for view in views}
    names = [name for name in store.topics or {} if topic in (None, name) and name not in seen]
    return StoreSurvey(
        directory,
        store.release.value[0] + ".x",
        "in use" if store.process is not None else state,
        store.process,
        ends,
        tuple(views),
        tuple(store.index_paths),
        tuple(problems),
        tuple(sorted(names)),
        store.rocksdb_folder,
    )


def _check_topic(store: StoredStore, topic: str) -> None:
    """Raise MissingSegmentError unless a topic has a queue, or the table of topics has it."""
    names = {name for name, _ in store.queues} | (store.topics or {}).keys()
    if topic not in names:
        raise no_such_topic(store.directory, topic, names)


def _oddities(directory: str, files: StoredFiles) -> list[Problem]:
    return [
        Problem(f"{directory}/{oddity.relative}", None, oddity.reason) for oddity in files.oddities
    ]
