"""
Which coordinators a request is for: the groups or transactional ids that it names.

A node refuses those that it does not coordinate; of several in a list the others are served. Most
requests are looked at before the coordinator is, and an empty name is refused by whoever is asked.
AddPartitionsToTxn is not here: its handler looks at the partitions first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import attrs

from logstore.compat.kafka.declared_messages import read_request
from logstore.compat.kafka.message_handlers import read_message
from logstore.compat.kafka.registry import Api, RawRequest
from logstore.compat.kafka.topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC

#: what answers about share groups say of the wrong coordinator
_REFUSAL = "This is not the correct coordinator."

#: what a request names, as its message has it: words, None for what any node may be asked
Names = Callable[[Any], Iterable[str | None]]


@attrs.frozen
class Coordinated:
    """Requests for the coordinators whose state is in `topic`; `names` reads what they name."""

    topic: str
    names: Names
    #: kind of group and name of our own class of the message, where the library has none; such
    #: classes take their time to be made, and most clusters are asked for none
    declared: tuple[str, str] | None = None
    #: what the list of them is called in a request, and the one of answers in a response
    lists: tuple[str, str] | None = None
    #: what is said beside the code of a refusal
    refusal: str = ""

    def read(self, api: Api, raw: RawRequest) -> Any:
        """Return a request as its message."""
        if self.declared is None:
            return read_message(api, raw)
        kind, name = self.declared
        messages = import_module(f"logstore.compat.kafka.groups.{kind}.messages")
        return read_request(getattr(messages, name), raw)


def _group(message: Any) -> list[str | None]:
    return [message.group_id or None]


def _any_group(message: Any) -> list[str | None]:
    """Return the group, which may have an empty name: offsets were once committed without any."""
    return [message.group_id]


def _groups(message: Any) -> list[str | None]:
    return [one.group_id for one in message.groups]


def _fetched(message: Any) -> list[str | None]:
    return _groups(message) if getattr(message, "groups", None) else _any_group(message)


def _described(message: Any) -> list[str | None]:
    return [group_id or None for group_id in message.group_ids]


def _shared(message: Any) -> list[str | None]:
    """Return the groups; of those that are asked for no topic any node says nothing."""
    return [one.group_id if one.topics is None or one.topics else None for one in message.groups]


def _named(field: str) -> Names:
    return lambda message: getattr(message, field)


def _transaction(message: Any) -> list[str | None]:
    return [message.transactional_id or None]


def _transactions(message: Any) -> list[str | None]:
    return [name or None for name in message.transactional_ids]


def _of_group(kind: str, name: str, refusal: str = "") -> Coordinated:
    return Coordinated(GROUPS_TOPIC, _group, (kind, name), refusal=refusal)


def _of_groups(kind: str, name: str, names: Names = _described, refusal: str = "") -> Coordinated:
    lists = ("group_ids" if names is _described else "groups", "groups")
    return Coordinated(GROUPS_TOPIC, names, (kind, name), lists, refusal)


#: by API key; what is not here any node may be asked, or has nothing to do with coordinators
COORDINATED: Mapping[int, Coordinated] = {
    8: Coordinated(GROUPS_TOPIC, _any_group),
    **{key: Coordinated(GROUPS_TOPIC, _group) for key in (11, 12, 13, 14, 28, 47)},
    9: Coordinated(GROUPS_TOPIC, _fetched, lists=("groups", "groups")),
    15: Coordinated(GROUPS_TOPIC, _named("groups"), lists=("groups", "groups")),
    42: Coordinated(GROUPS_TOPIC, _named("groups_names"), lists=("groups_names", "results")),
    22: Coordinated(TRANSACTIONS_TOPIC, _transaction),
    25: Coordinated(TRANSACTIONS_TOPIC, _transaction),
    26: Coordinated(TRANSACTIONS_TOPIC, _transaction),
    65: Coordinated(
        TRANSACTIONS_TOPIC,
        _transactions,
        lists=("transactional_ids", "transaction_states"),
    ),
    68: _of_group("consumer", "ConsumerGroupHeartbeatRequest"),
    69: _of_groups("consumer", "ConsumerGroupDescribeRequest"),
    76: _of_group("share", "ShareGroupHeartbeatRequest"),
    77: _of_groups("share", "ShareGroupDescribeRequest", refusal=_REFUSAL),
    88: _of_group("streams", "StreamsGroupHeartbeatRequest"),
    89: _of_groups("streams", "StreamsGroupDescribeRequest"),
    90: _of_groups("share", "DescribeShareGroupOffsetsRequest", _shared, _REFUSAL),
    91: _of_group("share", "AlterShareGroupOffsetsRequest", _REFUSAL),
    92: _of_group("share", "DeleteShareGroupOffsetsRequest", _REFUSAL),
}
