"""
The APIs as the nodes of a cluster have them: each coordinates, and tells of, what is its own.

In front of requests for a coordinator stands the question whether this node is it; lists are cut
down to what this node would have. Leaders are a matter of single partitions, which handlers look
at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.kafka.declared_messages import answered
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.error_answers import error_answer, failed_answer
from logstore.compat.kafka.message_handlers import (
    ask_declared,
    ask_handler,
    changed,
    read_message,
    write_answer,
)
from logstore.compat.kafka.nodes.coordinated import COORDINATED, Coordinated
from logstore.compat.kafka.registry import APIS, Api, FindApi, RawRequest
from logstore.compat.kafka.topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from logstore.segments.kafka.internal_topics.codec import encode_message

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.waiting import Later

#: of a list that was answered, what a node tells
_Cut = Callable[["Broker", int, Any], None]


class NodeApis:
    """Entries of the registry as they are served where there are several nodes."""

    def __init__(self) -> None:
        self._served: dict[tuple[int, int], tuple[Api, Api]] = {}

    def finding(self, find_api: FindApi | None) -> FindApi:
        """Return who finds the entries; `find_api` finds those of a broker on its own."""

        def find(key: int, version: int) -> Api | None:
            found = APIS.get(key) if find_api is None else find_api(key, version)
            if found is None or (key not in COORDINATED and key not in _CUTS):
                return found
            known = self._served.get((key, version))
            if known is None or known[0] is not found:
                known = self._served[key, version] = found, _of_node(found)
            return known[1]

        return find


def _of_node(api: Api) -> Api:
    coordinated = COORDINATED.get(api.key)
    if coordinated is None:
        handle_raw: Any = partial(_tell_own, _CUTS[api.key], api)
    else:
        handle_raw = partial(_ask_coordinator, coordinated, api)
    return attrs.evolve(api, handle=None, handle_raw=handle_raw)


def _ask_coordinator(
    coordinated: Coordinated, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Serve what this node coordinates, and refuse the rest."""
    node_id = broker.nodes.node_of(client.listener).node_id
    message = coordinated.read(api, raw)
    is_own = [
        name is None or broker.placements.coordinator_of(coordinated.topic, name) == node_id
        for name in coordinated.names(message)
    ]
    if all(is_own):
        if api.handle_raw is not None:
            return api.handle_raw(broker, client, raw)
        tell: Callable[[Any], list[Chunk]] = partial(write_answer, raw)
    elif coordinated.lists is None or not any(is_own):
        return error_answer(broker, api, raw, ErrorCode.NOT_COORDINATOR, coordinated.refusal)
    elif coordinated.declared is not None:
        return _ask_of_own(coordinated, is_own, api, broker, client, raw, message)
    else:
        refused = _cut_to_own(coordinated.lists, is_own, api, message)
        tell = partial(_tell_with, coordinated.lists[1], refused, raw)
    answer = ask_handler(api, broker, client, raw, message)
    found: list[Chunk] | Later[list[Chunk]] = changed(answer, tell)
    return found


def _ask_of_own(
    coordinated: Coordinated,
    is_own: Sequence[bool],
    api: Api,
    broker: Broker,
    client: Client,
    raw: RawRequest,
    message: Any,
) -> list[Chunk]:
    """Answer a list of a message of ours: what this node coordinates, then refusals."""
    # With it come all messages that are our own; most clusters do without them.
    from logstore.compat.kafka.faults.own_answers import OWN_ANSWERS

    assert coordinated.lists is not None
    asked, told = coordinated.lists
    listed: Sequence[Any] = getattr(message, asked)
    others = tuple(one for one, own in zip(listed, is_own, strict=True) if not own)
    data = memoryview(encode_message(attrs.evolve(message, **{asked: others}), raw.version))
    refused = OWN_ANSWERS[api.key](
        raw._replace(data=data, position=0),
        {"error_code": ErrorCode.NOT_COORDINATOR, "error_message": coordinated.refusal or None},
    )
    own = attrs.evolve(message, **{asked: tuple(compress(listed, is_own))})
    served = ask_declared(api, broker, client, raw, own, type(refused))
    both = (*getattr(served, told), *getattr(refused, told))
    return answered(attrs.evolve(served, **{told: both}), raw)


def _cut_to_own(lists: tuple[str, str], is_own: Sequence[bool], api: Api, message: Any) -> Any:
    """Leave in a list what this node coordinates; return the answer that refuses the others."""
    asked: list[Any] = getattr(message, lists[0])
    setattr(message, lists[0], [one for one, own in zip(asked, is_own, strict=True) if not own])
    refused = failed_answer(api, message, message.API_VERSION, ErrorCode.NOT_COORDINATOR, None)
    setattr(message, lists[0], list(compress(asked, is_own)))
    return refused


def _tell_with(told_list: str, refused: Any, raw: RawRequest, answer: Any) -> list[Chunk]:
    """Write an answer with what was refused behind what was served."""
    setattr(answer, told_list, [*getattr(answer, told_list), *getattr(refused, told_list)])
    return write_answer(raw, answer)


def _tell_own(
    cut: _Cut, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]]:
    """Serve a list, and leave out what other nodes tell."""
    node_id = broker.nodes.node_of(client.listener).node_id

    def told(answer: Any) -> list[Chunk]:
        cut(broker, node_id, answer)
        return write_answer(raw, answer)

    found: list[Chunk] | Later[list[Chunk]] = changed(
        ask_handler(api, broker, client, raw, read_message(api, raw)), told
    )
    return found


def _cut_groups(broker: Broker, node_id: int, answer: Any) -> None:
    answer.groups = [
        one
        for one in answer.groups
        if broker.placements.coordinator_of(GROUPS_TOPIC, one.group_id) == node_id
    ]


def _cut_transactions(broker: Broker, node_id: int, answer: Any) -> None:
    answer.transaction_states = [
        one
        for one in answer.transaction_states
        if broker.placements.coordinator_of(TRANSACTIONS_TOPIC, one.transactional_id) == node_id
    ]


def _cut_log_directories(broker: Broker, node_id: int, answer: Any) -> None:
    find = broker.placements.find
    for directory in answer.results:
        for topic in directory.topics:
            known = broker.topics[topic.name]
            topic.partitions = [
                one
                for one in topic.partitions
                if node_id in find(known, one.partition_index).replicas
            ]
        directory.topics = [topic for topic in directory.topics if topic.partitions]


_CUTS: Mapping[int, _Cut] = {16: _cut_groups, 35: _cut_log_directories, 66: _cut_transactions}
