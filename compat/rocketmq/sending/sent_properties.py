"""
What a broker makes of the properties that a client sends with a message.

Java reads them into a hash map, adds region, trace switch, cluster and, where it is missing, the
unique key, removes what only the broker may set, and writes them in the order of the map. Clients
send the same few names again and again, so how to get from one text to the other is planned once
for each sequence of names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from logstore.compat.rocketmq.lite.lite_names import LITE_TOPIC, with_light_queue
from logstore.segments.rocketmq.messages.java_strings import java_hash_map_order
from logstore.segments.rocketmq.messages.properties import (
    CLUSTER,
    HASH_MAP_CAPACITY_5,
    MESSAGE_REGION,
    POP_CHECK,
    PRIORITY,
    TRACE_ON,
    TRANSACTION_PREPARED,
    UNIQUE_KEY,
    WAIT,
    encode_properties,
    parse_properties,
)

_PLANS_MAX = 4096
_UNIQUE_KEY_NEEDLE = f"{UNIQUE_KEY}\x01"
_UNIQUE_KEY_START = len(_UNIQUE_KEY_NEEDLE)


@attrs.define
class SentProperties:
    """Properties as they are to be stored, and what the broker itself needs to know of them."""

    text: str
    unique_key: str
    #: the message is half of a transaction
    is_half: bool
    #: its sender wants to know that it is safe
    waits_for_flush: bool
    #: it is such a half, or its queue may be another than the client says, for a priority
    needs_care: bool


@attrs.define
class _Plan:
    """How the text for one sequence of names comes about; places in the sequence, -1: nowhere."""

    #: places in the client's pieces, and behind those in what the broker adds
    order: list[int]
    unique_key: int
    transaction: int
    wait: int
    has_priority: bool


@attrs.frozen
class _Shape:
    """What is stored around a unique key."""

    before: str
    behind: str
    is_half: bool
    waits_for_flush: bool
    needs_care: bool


class PropertyRewriter:
    """Rewrites properties for one broker; `make_unique_key` is asked where a client gave none."""

    def __init__(
        self, region: str, cluster: str, make_unique_key: Callable[[], str], *, is_trace_on: bool
    ) -> None:
        #: what every message gets
        self.added = {
            MESSAGE_REGION: region,
            TRACE_ON: "true" if is_trace_on else "false",
            CLUSTER: cluster,
        }
        self._added_pieces = [f"{name}\x01{value}" for name, value in self.added.items()]
        self._make_unique_key = make_unique_key
        self._plans: dict[tuple[str, ...], _Plan] = {}
        #: what stands before and behind the unique key, sent and stored
        self._shapes: dict[tuple[str, str], _Shape] = {}

    def rewrite(self, text: str, topic: str) -> SentProperties:
        """Return what is to be stored of `text`, of a message to `topic`."""
        if LITE_TOPIC in text:
            text = with_light_queue(topic, text)
        start = text.find(_UNIQUE_KEY_NEEDLE) + _UNIQUE_KEY_START
        end = text.find("\x02", start)
        if end > start >= _UNIQUE_KEY_START:
            around = text[:start], text[end:]
            shape = self._shapes.get(around)
            if shape is not None:
                key = text[start:end]
                return SentProperties(
                    shape.before + key + shape.behind,
                    key,
                    shape.is_half,
                    shape.waits_for_flush,
                    shape.needs_care,
                )
            found = self._rewrite_by_plan(text)
            self._learn_shape(around, found, text[start:end])
            return found
        return self._rewrite_by_plan(text)

    def _learn_shape(self, around: tuple[str, str], found: SentProperties, key: str) -> None:
        """Remember all but the key, which alone changes in the messages of many producers."""
        before, needle, behind = found.text.partition(_UNIQUE_KEY_NEEDLE + key + "\x02")
        is_plain = needle and found.unique_key == key and len(self._shapes) < _PLANS_MAX
        if is_plain and _UNIQUE_KEY_NEEDLE not in around[1] and around[0].count("UNIQ_KEY") == 1:
            self._shapes[around] = _Shape(
                before + _UNIQUE_KEY_NEEDLE,
                "\x02" + behind,
                found.is_half,
                found.waits_for_flush,
                found.needs_care,
            )

    def _rewrite_by_plan(self, text: str) -> SentProperties:
        pieces = text.split("\x02")
        if not pieces[-1]:
            del pieces[-1]
        names = tuple([piece[: piece.find("\x01")] for piece in pieces])
        plan = self._plans.get(names)
        # Pairs without a value or a separator are left out: they are rare, and not planned for.
        is_lacking = "\x01\x02" in text or text.endswith("\x01")
        if plan is None or is_lacking or text.count("\x01") != len(pieces):
            return self._rewrite_slowly(text)
        unique_key = pieces[plan.unique_key][_UNIQUE_KEY_START:]
        pieces += self._added_pieces
        stored = "\x02".join([pieces[place] for place in plan.order]) + "\x02"
        is_half = plan.transaction >= 0 and _is_true(pieces[plan.transaction])
        return SentProperties(
            stored,
            unique_key,
            is_half,
            plan.wait < 0 or _is_true(pieces[plan.wait]),
            is_half or plan.has_priority,
        )

    def _rewrite_slowly(self, text: str) -> SentProperties:
        sent = parse_properties(text.encode("utf-8", "surrogatepass"))
        names = tuple(sent)
        stored = {name: value for name, value in sent.items() if name != POP_CHECK}
        is_keyless = UNIQUE_KEY not in stored
        if is_keyless:
            stored[UNIQUE_KEY] = self._make_unique_key()
        stored.update(self.added)
        if not is_keyless and not self.added.keys() & sent.keys() and POP_CHECK not in sent:
            self._learn(names, tuple(stored))
        is_half = stored.get(TRANSACTION_PREPARED, "").lower() == "true"
        return SentProperties(
            encode_properties(stored, capacity=HASH_MAP_CAPACITY_5).decode(),
            stored[UNIQUE_KEY],
            is_half,
            stored.get(WAIT, "true").lower() == "true",
            is_half or PRIORITY in stored,
        )

    def _learn(self, names: tuple[str, ...], stored_names: tuple[str, ...]) -> None:
        """Plan for `names`, which the client sent, each once."""
        if len(self._plans) >= _PLANS_MAX:
            self._plans.clear()
        places = {name: place for place, name in enumerate(stored_names)}
        order = java_hash_map_order(stored_names, HASH_MAP_CAPACITY_5)
        self._plans[names] = _Plan(
            [places[name] for name in order],
            places[UNIQUE_KEY],
            places.get(TRANSACTION_PREPARED, -1),
            places.get(WAIT, -1),
            PRIORITY in places,
        )


def _is_true(piece: str) -> bool:
    return piece.partition("\x01")[2].lower() == "true"


def with_properties(text: str, added: Mapping[str, str]) -> str:
    """Return properties as a broker stores them that puts more into their map."""
    found = {**parse_properties(text.encode()), **added}
    return encode_properties(found, capacity=HASH_MAP_CAPACITY_5).decode()
