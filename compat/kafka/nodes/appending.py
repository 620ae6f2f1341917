"""What a node does not append: another one leads the partition, or too few replicas are in sync."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.node_endpoint import node_endpoints
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.produce.reply import ProduceReply
    from logstore.compat.kafka.security.listener import Listener
    from logstore.compat.kafka.transactions.producing import ProduceAdmission
    from logstore.segments.kafka.partition import KafkaPartition

#: the first version of Produce that is told who leads (KIP-951)
_ENDPOINTS_SINCE = 10


class LedElsewhereError(RefusedRequestError):
    """The node `leader` leads the partition, in that epoch; nobody if it is negative."""

    def __init__(self, leader: int, leader_epoch: int) -> None:
        super().__init__(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.leader = leader
        self.leader_epoch = leader_epoch


def with_node_refusals(
    broker: Broker,
    listener: Listener,
    acks: int,
    partitions: Iterable[KafkaPartition],
    admission: ProduceAdmission,
) -> ProduceAdmission:
    """Add to what is refused what the node of a listener must not append."""
    refusals = dict(admission.refusals)
    for partition in partitions:
        code = broker.placements.append_error(listener, partition, acks)
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            leader = broker.placements.of(partition).leader
            refusals[partition] = LedElsewhereError(leader, partition.leader_epoch)
        elif code:
            refusals[partition] = RefusedRequestError(code)
    return admission._replace(refusals=refusals)


def tell_leaders(
    broker: Broker, listener: Listener, admission: ProduceAdmission, reply: ProduceReply
) -> None:
    """Say where those are who lead what was refused."""
    leaders = {
        one.leader for one in admission.refusals.values() if isinstance(one, LedElsewhereError)
    }
    if leaders and reply.version >= _ENDPOINTS_SINCE:
        reply.endpoints = node_endpoints(broker, listener, leaders)
