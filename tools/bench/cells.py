"""A cell is one thing that is measured, the same way for every target, a few seconds a time."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Generator, Mapping, Sequence

import attrs

from logstore.tools.bench.client import (
    Connection,
    create_topic,
    delete_topic,
    write_past_first_index_entries,
)
from logstore.tools.bench.figures import Metric
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.targets import Target

_serial = itertools.count(1)


@attrs.frozen
class Cell:
    """
    One measurement. `run(target, seconds)` takes about that long and returns figures by name.

    A figure that cannot be had (the CPU time of a process we do not know) is left out.
    `needs_start` says that the cell starts instances of its own. `is_load` says that it loads the
    main instance, which is warmed up for it.
    """

    scenario: str
    name: str
    metrics: tuple[Metric, ...]
    run: Callable[[Target, float], Mapping[str, float]]
    needs_start: bool = False

    @property
    def is_load(self) -> bool:
        """Whether the cell runs against the main instance."""
        return not self.needs_start


def pick(cells: Sequence[Cell], scenarios: Sequence[str], text: str | None) -> list[Cell]:
    """
    Return the cells of these scenarios (all where none is named) whose names contain `text`.

    Raises :class:`BenchError` with the names there are, or where nothing is left.
    """
    known = list(dict.fromkeys(cell.scenario for cell in cells))
    for name in scenarios:
        if name not in known:
            raise BenchError(f"no scenario {name!r}; there are {', '.join(known)}")
    found = [cell for cell in cells if not scenarios or cell.scenario in scenarios]
    found = [cell for cell in found if text is None or text in cell.name]
    if not found:
        raise BenchError(f"no cell of these scenarios has {text!r} in its name")
    return found


def fresh_topic_name(stem: str) -> str:
    """Return a name that no earlier cell of this process has used."""
    return f"bench-{stem}-{next(_serial)}-{time.time_ns() % 1_000_000}"


@contextlib.contextmanager
def topic_on(target: Target, stem: str, partition_count: int) -> Generator[tuple[Connection, str]]:
    """Yield a connection and a topic that is written past its first index entries; delete it."""
    topic = fresh_topic_name(stem)
    with Connection(target.main.address) as connection:
        create_topic(connection, topic, partition_count)
        write_past_first_index_entries(connection, topic, partition_count)
        yield connection, topic
    with Connection(target.main.address) as connection:
        delete_topic(connection, topic)


class Meter:
    """Reads what a stretch of work cost the server and the client."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._server = target.cpu_seconds()
        self._client = time.process_time()
        self._started = time.perf_counter()

    def costs(self, units: int) -> dict[str, float]:
        """
        Return the server's CPU microseconds per unit and the share of a core the client was busy.

        A client near 1 was itself the limit: the broker may be faster than the figures say.
        """
        elapsed = time.perf_counter() - self._started
        figures = {"client_busy": (time.process_time() - self._client) / elapsed}
        now = self._target.cpu_seconds()
        if self._server is not None and now is not None and units:
            figures["cpu_us"] = (now - self._server) * 1e6 / units
        return figures


CLIENT_BUSY = Metric("client_busy", "cores", is_shown=False)
