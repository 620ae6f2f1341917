"""A question that was right gets one thing wrong: nearly valid is what finds the checks."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.interop.drawn.codec import TAGS
from tests.interop.drawn.line import CLIENT, END, HEADER_TAGS
from tests.interop.drawn.schemas import ZERO_UUID, Field, Schema

EDGES: dict[str, tuple[Any, ...]] = {
    "int8": (-1, 0, 1, 2, 5, 127, -128),
    "int16": (-2, -1, 0, 1, 2, 32767, -32768),
    "uint16": (0, 1, 65535),
    "int32": (-2, -1, 0, 1, 2, 7, 2**31 - 1, -(2**31)),
    "uint32": (0, 1),
    "int64": (-5, -2, -1, 0, 1, 5, 2**63 - 1, -(2**63)),
    "float64": (-1.0, 0.0, 0.5, 1.0, 1e12, float("nan"), float("inf")),
    "string": ("", " ", "x", "no-such", "a/b", ".", "ü", "x" * 300),
    "bytes": (b"", b"\0", b"\xff" * 9),
}
#: What would have a broker wait for an hour, or fill the disk.
LEFT_ALONE = frozenset(
    ("MaxWaitMs", "TimeoutMs", "timeoutMs", "SessionTimeoutMs", "RebalanceTimeoutMs",
     "NumPartitions", "Count", "Records", "TransactionTimeoutMs", "MaxBytes", "MinBytes",
     "Iterations", "TopicId", "AllowDowngrade", "FeatureUpdates", "ValidateOnly",
     "SubscribedTopicRegex", "ConfigurationKeys", "ConfigOperation", "SessionId", "ReplicaId")
)  # fmt: skip
#: Over the same twice a real broker stumbles, and does not answer.
ONCE = frozenset(("Resources", "Transactions", "Protocols"))


#: so many questions are put in an odd way, and so many texts and lists that are changed are null
#: where they must not be
ODD_SHARE = 0.05
NULL_SHARE = 0.04
#: not the very largest number: a request with it a real broker cannot pass on to its controller
UNKNOWN_TAGS: tuple[tuple[int, bytes], ...] = (
    (9_000, b""), (5_000_000, b"\xff" * 200), (77, b"\0"), (2**31 - 2, b"x"),
)  # fmt: skip


def put_oddly(
    schema: Schema, version: int, body: dict[str, Any], chance: random.Random
) -> dict[str, Any]:
    """Return the question as a client of another kind would put it."""
    ways: list[tuple[str, Any]] = [
        (CLIENT, None), (CLIENT, b""), (CLIENT, "\u00fc, x=\"1\"".encode()),
        (END, b"\0"), (END, b"more than that"), (END, 1), (END, 3),
    ]  # fmt: skip
    if schema.is_flexible(version):
        tags = [chance.choice(UNKNOWN_TAGS)]
        ways += [(HEADER_TAGS, tags), (TAGS, tags), (TAGS, [*UNKNOWN_TAGS])]
    return dict([*body.items(), chance.choice(ways)])


def mutated(
    schema: Schema, version: int, body: dict[str, Any], chance: random.Random
) -> dict[str, Any]:
    """Return the question with one field changed, an item doubled, or one left out."""
    fresh: dict[str, Any] = _copied(body)
    places: list[Callable[[], None]] = []
    _collect(schema.fields, version, fresh, chance, places)
    if places:
        chance.choice(places)()
    return fresh


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(one) for name, one in value.items()}
    if type(value) is list:
        return [_copied(one) for one in value]
    return value


def _collect(
    fields: tuple[Field, ...],
    version: int,
    body: dict[str, Any],
    chance: random.Random,
    places: list[Callable[[], None]],
) -> None:
    for field in fields:
        if version not in field.versions or field.name in LEFT_ALONE:
            continue
        value = body.get(field.name, field.initial(version))
        if field.name not in body and version in field.tagged:
            continue
        if field.is_array:
            if type(value) is list and field.name in body:
                _collect_items(field, version, body, value, chance, places)
            if version in field.nullable or chance.random() < NULL_SHARE:
                places.append(partial(body.__setitem__, field.name, None))
        elif field.is_struct:
            if isinstance(value, dict):
                body[field.name] = value
                _collect(field.fields, version, value, chance, places)
        else:
            edge = _edge(field, version, chance)
            places.append(partial(body.__setitem__, field.name, edge))


def _collect_items(
    field: Field,
    version: int,
    body: dict[str, Any],
    items: list[Any],
    chance: random.Random,
    places: list[Callable[[], None]],
) -> None:
    if field.name != "Transactions":  # none at all is never answered
        places.append(partial(body.__setitem__, field.name, []))
    if items and field.name not in ONCE:
        places.append(lambda: items.append(_copied(chance.choice(items))))
    for number, item in enumerate(items):
        if field.is_struct:
            if isinstance(item, dict):
                _collect(field.fields, version, item, chance, places)
        else:
            edge = _edge(field, version, chance)
            places.append(partial(items.__setitem__, number, edge))


def _edge(field: Field, version: int, chance: random.Random) -> Any:
    share = 0.3 if version in field.nullable and not field.is_array else NULL_SHARE
    if field.type in {"string", "bytes"} and chance.random() < share:
        return None
    if field.type == "bool":
        return chance.random() < 0.5
    if field.type == "uuid":
        return chance.choice((ZERO_UUID, bytes(15) + b"\1", bytes(range(16))))
    return chance.choice(EDGES[field.type])
