"""
All that can be made to go wrong with one process of brokers, as machines ask for it.

What is asked and answered is what JSON knows. It all happens where requests are served.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Protocol, get_args

import attrs

from logstore.compat.faults.request_fault import RequestFault
from logstore.compat.faults.request_faults import RequestFaults
from logstore.compat.waiting import Timers
from logstore.errors import LogStoreError
from logstore.host import Host
from logstore.testing.disk_faults import DiskFaults, Fault, FaultKind
from logstore.testing.faulty_files import FaultyFileSystem
from logstore.testing.running_clock import RunningClock

Asked = Mapping[str, Any]
MoveLeaders = Callable[[str, int | None, int | None], dict[int, int]]
_FAULT_FIELDS = {field.name for field in attrs.fields(RequestFault) if field.init}
_DISK_STATE = {"is_read_only": bool, "sync_lies": bool, "capacity_bytes": (int, type(None))}


class ClusterNodes(Protocol):
    """The nodes of a cluster, by their ids."""

    def states(self) -> Mapping[int, bool]:
        """Return whether each is up."""
        ...

    def stop(self, node_id: int) -> None:
        """Take one out. Raises ValueError."""
        ...

    def start(self, node_id: int) -> None:
        """Let one in again. Raises ValueError, OSError."""
        ...


class ControlError(LogStoreError):
    """What is asked for makes no sense; the text says why."""


class UnknownFaultError(ControlError):
    """There is no fault of that number, or no more."""


class FaultControl:
    """
    Faults of requests, disk and clock of the brokers that are served with :attr:`host`.

    Whoever serves them says which timers follow the clock, how leaders move, if they do, and which
    nodes there are.
    """

    def __init__(self) -> None:
        self.faults = RequestFaults()
        self.disk = DiskFaults()
        self.clock = RunningClock()
        self.clock.on_push = self._catch_up
        self.timers: list[Timers] = []
        self.move_leaders: MoveLeaders | None = None
        self.nodes: ClusterNodes | None = None

    @property
    def host(self) -> Host:
        """The world that the brokers are to live in."""
        return Host(FaultyFileSystem(self.disk), self.clock, Random())

    def _catch_up(self) -> None:
        for timers in self.timers:
            timers.catch_up()

    def state(self) -> dict[str, Any]:
        """Return all there is to know."""
        return {
            "faults": self.planned(),
            "disk": self.disk_state(),
            "clock": self.time(),
            "nodes": self.node_states(),
            "apis": self.faults.apis,
            "errors": self.faults.errors,
        }

    # requests

    def planned(self) -> list[dict[str, Any]]:
        """Return the faults of requests, the oldest first."""
        return [fault.to_json() for fault in self.faults.planned]

    def plan(self, asked: Asked) -> dict[str, Any]:
        """Plan a fault with the fields of a :class:`RequestFault`. Raises ControlError."""
        _refuse_unknown(asked, _FAULT_FIELDS)
        if not {"action", "api"} <= set(asked):
            raise ControlError("a fault needs at least an action and an api")
        try:
            return self.faults.plan(RequestFault(**asked)).to_json()
        except (TypeError, ValueError) as error:
            raise ControlError(str(error)) from None

    def _fault(self, number: int) -> RequestFault:
        for fault in self.faults.planned:
            if fault.number == number:
                return fault
        raise UnknownFaultError(f"no fault has the number {number}")

    def cancel(self, number: int) -> list[dict[str, Any]]:
        """Let a fault strike no more; whoever it holds goes on. Raises UnknownFaultError."""
        self.faults.cancel(self._fault(number))
        return self.planned()

    def clear(self) -> list[dict[str, Any]]:
        """Let all requests go well."""
        self.faults.clear()
        return self.planned()

    # disk

    def disk_state(self) -> dict[str, Any]:
        """Return what is to go wrong with files."""
        return {
            "planned": [attrs.asdict(fault) for fault in self.disk.planned],
            **{name: getattr(self.disk, name) for name in _DISK_STATE},
        }

    def plan_disk_fault(self, asked: Asked) -> dict[str, Any]:
        """
        Plan a failure: ``kind`` of operation, ``error`` as ``EIO``, ``path``, ``after``, ``count``.

        A write may have ``partial_bytes``. Raises ControlError.
        """
        fields = dict(asked)
        _refuse_unknown(fields, {"kind", "error", "path", "after", "count", "partial_bytes"})
        kind, name = fields.pop("kind", None), fields.pop("error", "EIO")
        if kind not in get_args(FaultKind):
            raise ControlError(f"kind is one of {', '.join(get_args(FaultKind))}; not {kind!r}")
        code = getattr(errno, str(name), None)
        if not isinstance(code, int):
            raise ControlError(f"error is a name of errno, as EIO or ENOSPC; not {name!r}")
        self.disk.planned.append(
            Fault(
                kind,
                code,
                _typed(fields, "path", str, "*"),
                _typed(fields, "after", int, 0),
                _typed(fields, "count", (int, type(None)), 1),
                _typed(fields, "partial_bytes", int, 0),
            )
        )
        return self.disk_state()

    def set_disk(self, asked: Asked) -> dict[str, Any]:
        """Set ``is_read_only``, ``sync_lies`` or ``capacity_bytes``. Raises ControlError."""
        _refuse_unknown(asked, set(_DISK_STATE))
        values = {name: _typed(asked, name, _DISK_STATE[name], None) for name in asked}
        for name, value in values.items():
            setattr(self.disk, name, value)
        return self.disk_state()

    def heal_disk(self) -> dict[str, Any]:
        """Let all files work again."""
        self.disk.clear()
        return self.disk_state()

    # time and leaders

    def time(self) -> dict[str, Any]:
        """Return what the clocks show."""
        return {"wall_ms": self.clock.wall_ms(), "monotonic_ms": self.clock.monotonic_ms()}

    def push_clock(self, asked: Asked) -> dict[str, Any]:
        """Let ``advance_ms`` pass at once, or let the wall clock jump by ``jump_wall_ms``."""
        _refuse_unknown(asked, {"advance_ms", "jump_wall_ms"})
        advance_ms = _typed(asked, "advance_ms", (int, float), 0)
        jump_ms = _typed(asked, "jump_wall_ms", (int, float), 0)
        if advance_ms < 0:
            raise ControlError("time does not run backwards; jump_wall_ms sets the wall clock back")
        if jump_ms:
            self.clock.jump_wall(jump_ms)
        if advance_ms:
            self.clock.advance(advance_ms)
        return self.time()

    def move(self, asked: Asked) -> dict[str, int]:
        """Begin the next leader epoch of a ``topic``, or one ``partition`` of it, ``to`` a node."""
        _refuse_unknown(asked, {"topic", "partition", "to"})
        if self.move_leaders is None:
            raise ControlError("only Kafka's layout has leader epochs")
        topic = _typed(asked, "topic", str, "")
        index = _typed(asked, "partition", (int, type(None)), None)
        to = _typed(asked, "to", (int, type(None)), None)
        try:
            epochs = self.move_leaders(topic, index, to)
        except ValueError as error:
            raise ControlError(str(error)) from None
        return {str(index): epoch for index, epoch in epochs.items()}

    def node_states(self) -> dict[str, bool]:
        """Return the nodes of a cluster, and whether each is up."""
        return {} if self.nodes is None else {str(i): up for i, up in self.nodes.states().items()}

    def stop_node(self, number: int) -> dict[str, bool]:
        """Take a node of a cluster out."""
        return self._change_node(lambda nodes: nodes.stop(number))

    def start_node(self, number: int) -> dict[str, bool]:
        """Let a node in again."""
        return self._change_node(lambda nodes: nodes.start(number))

    def _change_node(self, change: Callable[[ClusterNodes], None]) -> dict[str, bool]:
        if self.nodes is None:
            raise ControlError("there is a cluster only with `logstore serve --nodes N`")
        try:
            change(self.nodes)
        except (ValueError, OSError) as error:
            raise ControlError(str(error)) from None
        return self.node_states()


def _refuse_unknown(asked: Asked, known: set[str]) -> None:
    strange = sorted(set(asked) - known)
    if strange:
        raise ControlError(
            f"no field is called {strange[0]!r}; there are {', '.join(sorted(known))}"
        )


def _typed(asked: Asked, name: str, kind: Any, default: Any) -> Any:
    """Return a field that must be of a kind, of which a truth value is only ``bool``."""
    value = asked.get(name, default)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ControlError(f"{name}: {value!r} is of the wrong kind")
    return value
