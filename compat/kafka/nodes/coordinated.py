"""
Which coordinators a request is for: the groups or transactional ids that it names.

A node refuses those that it does not coordinate. Where a request may name several and this says
which list they stand in, the others in it are served; elsewhere one of another node's is enough for
the whole request to be refused, for clients ask each coordinator for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from logstore.compat.kafka.declared_messages import read_request
from logstore.compat.kafka.groups.consumer import messages as of_consumers
from logstore.compat.kafka.groups.share import messages as of_shares
from logstore.compat.kafka.groups.streams import messages as of_streams
from logstore.compat.kafka.message_handlers import read_message
from logstore.compat.kafka.registry import Api, RawRequest
from logstore.compat.kafka.topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC

#: the first version of AddPartitionsToTxn with several transactions
_FIRST_OF_SEVERAL = 4

#: what a request names, as its message has it: words, None for none
Names = Callable[[Any], Iterable[str | None]]


@attrs.frozen
class Coordinated:
    """Requests for the coordinators whose state is in `topic`; `names` reads what they name."""

    topic: str
    names: Names
    #: our own class of the message, where the library has none
    declared: type[Any] | None = None
    #: what the list of them is called in a request, and the one of answers in a response
    lists: tuple[str, str] | None = None

    def read(self, api: Api, raw: RawRequest) -> Any:
        """Return a request as its message."""
        declared = self.declared
        return read_message(api, raw) if declared is None else read_request(declared, raw)

    def keys(self, message: Any) -> list[str]:
        """Return what a request names."""
        return [name for name in self.names(message) if name is not None]


def _group(message: Any) -> list[str | None]:
    return [message.group_id]


def _groups(message: Any) -> list[str | None]:
    return [one.group_id for one in message.groups]


def _fetched(message: Any) -> list[str | None]:
    return _groups(message) if getattr(message, "groups", None) else _group(message)


def _named(field: str) -> Names:
    return lambda message: getattr(message, field)


def _transaction(message: Any) -> list[str | None]:
    return [message.transactional_id]


def _added_to(message: Any) -> list[str | None]:
    """Return the transaction; where there may be several, the handler answers for each."""
    name: str = message.v3_and_below_transactional_id
    return [name] if message.API_VERSION < _FIRST_OF_SEVERAL else []


def _of_group(declared: type[Any], names: Names = _group) -> Coordinated:
    return Coordinated(GROUPS_TOPIC, names, declared)


#: by API key; what is not here any node may be asked, or has nothing to do with coordinators
COORDINATED: Mapping[int, Coordinated] = {
    **{key: Coordinated(GROUPS_TOPIC, _group) for key in (8, 11, 12, 13, 14, 28, 47)},
    9: Coordinated(GROUPS_TOPIC, _fetched, lists=("groups", "groups")),
    15: Coordinated(GROUPS_TOPIC, _named("groups"), lists=("groups", "groups")),
    42: Coordinated(GROUPS_TOPIC, _named("groups_names"), lists=("groups_names", "results")),
    22: Coordinated(TRANSACTIONS_TOPIC, _transaction),
    24: Coordinated(TRANSACTIONS_TOPIC, _added_to),
    25: Coordinated(TRANSACTIONS_TOPIC, _transaction),
    26: Coordinated(TRANSACTIONS_TOPIC, _transaction),
    65: Coordinated(
        TRANSACTIONS_TOPIC,
        _named("transactional_ids"),
        lists=("transactional_ids", "transaction_states"),
    ),
    68: _of_group(of_consumers.ConsumerGroupHeartbeatRequest),
    69: _of_group(of_consumers.ConsumerGroupDescribeRequest, _named("group_ids")),
    76: _of_group(of_shares.ShareGroupHeartbeatRequest),
    77: _of_group(of_shares.ShareGroupDescribeRequest, _named("group_ids")),
    88: _of_group(of_streams.StreamsGroupHeartbeatRequest),
    89: _of_group(of_streams.StreamsGroupDescribeRequest, _named("group_ids")),
    90: _of_group(of_shares.DescribeShareGroupOffsetsRequest, _groups),
    91: _of_group(of_shares.AlterShareGroupOffsetsRequest),
    92: _of_group(of_shares.DeleteShareGroupOffsetsRequest),
}
