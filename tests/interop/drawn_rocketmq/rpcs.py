"""Calls of gRPC clients at the proxy, drawn: most of them right, many with something odd."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import grpc

from tests.interop.drawn.pair import Pair, of_side
from tests.interop.grpc_wire import GrpcWire, Headers

#: kinds of topics, each with one queue
KINDS = ("normal", "fifo", "delay", "transaction", "priority")
#: what differs from run to run
_MASKED = re.compile(
    r'"(message_id|transaction_id|recall_handle|receipt_handle|store_host|store_timestamp|'
    r'delivery_timestamp|born_host)": "[^"]*"'
)
#: Java's proxy shows which of its classes an error comes from, and its answers a class and a line
_JAVA = re.compile(
    r"org\.apache\.rocketmq\.proxy\.common\.Address\."
    r"|org\.apache\.rocketmq\.\S+Exception: |\. \w+Exception\. [a-z]+\.[a-z.]+[^\"]*"
)
#: of a message that does not say when it was born
_BORN_NOW = re.compile(r'"born_timestamp": "(?!2023-11-14)[^"]*"')
Answer = dict[str, Any] | list[dict[str, Any]] | str


#: of a client's settings, which Java clears away by the clock (``GrpcClientSettingsManager``)
_FORGOTTEN = "cannot find client settings for this client"


def topic_name(kind: str) -> str:
    """Return the name of a topic of this kind."""
    return f"drawn-{kind}"


@attrs.define
class Calls:
    """What a session of calls knows: clients of both proxies, and what they have got."""

    addresses: Pair
    chance: random.Random
    prefix: str
    differences: list[str] = attrs.field(factory=list)
    steps: list[str] = attrs.field(factory=list)
    #: handles of received messages: group, topic and the pair
    received: list[tuple[str, str, Pair, str]] = attrs.field(factory=list)
    transactions: list[Pair] = attrs.field(factory=list)
    handles: list[Pair] = attrs.field(factory=list)
    number: int = 0
    #: of clients that say more or something else than their names
    headers: dict[str, Headers] = attrs.field(factory=dict)
    ids: dict[str, str] = attrs.field(factory=dict)
    _wires: dict[str, Pair] = attrs.field(factory=dict)
    _pool: ThreadPoolExecutor = attrs.field(factory=lambda: ThreadPoolExecutor(2))

    def likely(self, share: float) -> bool:
        """Toss a coin."""
        return self.chance.random() < share

    def pick(self, *choices: Any) -> Any:
        """Draw one of some."""
        return self.chance.choice(choices)

    def next_id(self) -> str:
        """Return an id as clients make them."""
        self.number += 1
        return f"01{self.chance.randrange(16**12):012X}0110B30B17{self.number:010X}"

    def wires(self, client: str) -> Pair:
        """Return a client of both."""
        found = self._wires.get(client)
        if found is None:
            name = self.ids.get(client, f"{self.prefix}@{client}" if client else "")
            headers = self.headers.get(client, ())
            found = Pair(*(GrpcWire(one, name, headers) for one in self.addresses))
            self._wires[client] = found
        return found

    def both(self, client: str, ask: Callable[[GrpcWire, int], Any], asked: str) -> Pair:
        """Ask both at the same time, and compare what they say."""
        step = len(self.steps)
        self.steps.append(f"{client}: {asked}")
        wires = self.wires(client)
        told = Pair(*self._pool.map(lambda side: _told(ask, wires[side], side), (0, 1)))
        ours, real = (shown(one) for one in told)
        if ours != real and _FORGOTTEN not in real:
            told_as = f"\n    {ours:.700}\n    instead of\n    {real:.700}"
            self.differences.append(f"step {step}: {client}: {asked:.900}{told_as}")
        return told

    def ask(self, client: str, name: str, fields: dict[str, Any]) -> Pair:
        """Put a request to both."""
        return self.both(
            client, lambda wire, side: wire.ask(name, of_side(fields, side)), f"{name} {fields}"
        )

    def receive(self, client: str, fields: dict[str, Any]) -> Pair:
        """Receive from both."""
        return self.both(client, lambda wire, _: wire.receive(fields), f"ReceiveMessage {fields}")

    def listen(self, client: str, settings: dict[str, Any]) -> Pair:
        """Say what a client is, and be told its settings; one that has said it is another one."""
        self.close(client)
        return self.both(client, lambda wire, _: wire.listen(settings), f"Telemetry {settings}")

    def close(self, client: str) -> None:
        """Have a client hang up."""
        for wire in self._wires.pop(client, ()):
            wire.close()

    def close_all(self) -> None:
        """Have all hang up."""
        for client in list(self._wires):
            self.close(client)
        self._pool.shutdown()


def _told(ask: Callable[[GrpcWire, int], Any], wire: GrpcWire, side: int) -> Answer:
    try:
        found: Answer = ask(wire, side)
    except grpc.RpcError as error:
        return f"{error.code()} {error.details()}"
    return found


def shown(answer: Answer) -> str:
    """Return an answer without what differs from run to run."""
    text = json.dumps(answer, sort_keys=True, ensure_ascii=False)
    text = re.sub(r'"port": \d+', '"port": PORT', text)
    text = _BORN_NOW.sub('"born_timestamp": NOW', text)
    return _JAVA.sub("", _MASKED.sub(lambda found: f'"{found[1]}": ...', text))


def names_of(calls: Calls) -> tuple[str, str]:
    """Draw a topic and a group, most often good ones."""
    topic = topic_name(calls.pick(*KINDS)) if calls.likely(0.9) else odd_name(calls)
    group = f"{calls.prefix}-g" if calls.likely(0.92) else odd_name(calls)
    return topic, group


def odd_name(calls: Calls) -> str:
    """Draw a name that is none, or of nothing."""
    return str(
        calls.pick(
            "", " ", "none", "a b", "ä", "t" * 127, "t" * 128, "g" * 255, "g" * 256, "%RETRY%x",
            "%DLQ%x", "TBW102", "SCHEDULE_TOPIC_XXXX", "CID_RMQ_SYS_x", "rmq_sys_x", "a|b", "a%b",
            "a.b", "\x01", "TOOLS_CONSUMER", "DefaultCluster", "\u00a0", "\u3000",
        )
    )  # fmt: skip


def resource(calls: Calls, name: str) -> dict[str, Any] | None:
    """Return a name as it is put into a request, now and then in a namespace or not at all."""
    if calls.likely(0.02):
        return None
    return {"name": name, "resource_namespace": "ns"} if calls.likely(0.03) else {"name": name}


def duration(calls: Calls, *seconds: int) -> dict[str, int] | None:
    """Draw a duration, one of some most often."""
    if calls.likely(0.85):
        return {"seconds": calls.pick(*seconds)}
    return dict(calls.pick(
        {"seconds": -1}, {"nanos": 1}, {"nanos": -1}, {"nanos": 999_999_999}, {"seconds": 2**62},
        {"seconds": 315_576_000_001}, {"seconds": 1, "nanos": -1}, {"seconds": -(2**62)},
        {"nanos": 1_000_000_000}, {},
    ))  # fmt: skip


def moment(calls: Calls, *later_seconds: int) -> dict[str, int]:
    """Draw a time, one of some from now on most often."""
    if calls.likely(0.85):
        return {"seconds": int(time.time()) + int(calls.pick(*later_seconds))}
    return dict(calls.pick(
        {}, {"seconds": -1}, {"seconds": 2**62}, {"seconds": 253_402_300_800}, {"nanos": -1},
        {"seconds": 1, "nanos": 1_000_000_000}, {"seconds": -62_135_596_801}, {"seconds": 1},
    ))  # fmt: skip
