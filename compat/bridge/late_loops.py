"""The compiled loops, loaded beside the work and only once there is enough of it to be worth it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from logstore.compat.bridge.compiled.loops import CompiledRunDraft
    from logstore.compat.bridge.compiled.stored_messages import StoredMessages
    from logstore.segments.kafka.record_batch import RecordBatch
    from logstore.segments.rocketmq.messages.host_address import HostAddress
    from logstore.segments.rocketmq.reading.get_message import ReadableCommitLog, ReadableUnits

_log = logging.getLogger(__name__)

Work = Callable[[], None]
#: the thread that loads them; whoever ends the process need not wait for it
THREAD_NAME = "logstore-loops"

#: batches of fewer records are done sooner than the arrays for them are made
_FEW = 8
#: after so many records in larger batches the loops are loaded: a second of a core, or half a
#: minute the first time ever, when they are compiled
_WORTH_IT = 20_000


@attrs.frozen
class Loops:
    """What :mod:`logstore.compat.bridge.compiled.loops` has."""

    draft_batch: Callable[[str, int, RecordBatch, HostAddress], CompiledRunDraft | None]
    read_chunk: Callable[[ReadableUnits, ReadableCommitLog, int, int], tuple[bytes, int] | None]
    stored_messages: Callable[
        [Sequence[RecordBatch], int, tuple[str, int, int], HostAddress], StoredMessages | None
    ]


def beside(work: Work) -> None:
    """
    Do `work` in a thread of its own.

    Not in one of the server's: they are waited for when it stops, and a compiler takes its time.
    """
    threading.Thread(target=work, name=THREAD_NAME).start()


class LateLoops:
    """
    The loops of one bridge, None until they are loaded; they never are without numba.

    Loading goes to `run`, so that whoever serves goes on meanwhile.
    """

    def __init__(self, run: Callable[[Work], None] = beside) -> None:
        self._run = run
        self._loops: Loops | None = None
        self._seen_count = 0
        self._is_asked = False

    def want(self, count: int) -> Loops | None:
        """Return the loops for `count` records if they are loaded and worth it; None if not."""
        if count < _FEW:
            return None
        if self._loops is None:
            self.note(count)
        return self._loops

    def note(self, count: int) -> None:
        """Note that so many records were done without the loops."""
        self._seen_count += count
        if self._seen_count >= _WORTH_IT and not self._is_asked:
            self._is_asked = True
            self._run(self._load_or_tell)

    @property
    def loaded(self) -> Loops | None:
        """The loops, if they are loaded."""
        return self._loops

    def load(self) -> None:
        """Load the loops here and now; without numba there are none."""
        try:
            from logstore.compat.bridge.compiled import loops
        except ImportError:
            return
        if loops.is_available():
            loops.warm()
            self._loops = Loops(loops.draft_batch, loops.read_chunk, loops.stored_messages)

    def _load_or_tell(self) -> None:
        """Load the loops; go on without where something is wrong with them."""
        try:
            self.load()
        except Exception as error:  # noqa: BLE001 - whatever it is, it works without
            _log.warning("the compiled loops cannot be loaded, it goes on without: %s", error)
