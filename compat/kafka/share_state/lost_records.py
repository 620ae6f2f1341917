"""
What a crash took from a log is unknown to share groups as well.

A power loss may cut a log that was not flushed, and leave what was kept of its last records. Others
get their offsets then, and must be delivered, whatever was said of those that are lost. So a broker
that starts after an unclean stop looks for such states before anybody appends, and begins them
anew with what is left of them. Kafka does not: there another replica has the records.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.share_state.persister import (
    DeliveryState,
    SharePartitionKey,
    SharePartitionState,
)

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.share_state.share_coordinator import ShareCoordinator

_log = logging.getLogger(__name__)
#: asks for a state without a word about the leader
_NO_LEADER = -1


def forget_lost_records(broker: Broker, states: ShareCoordinator) -> None:
    """Cut off what is kept of offsets that logs do not have after an unclean stop."""
    for key in states.known():
        log = broker.by_id.get(key.topic_id, {}).get(key.partition)
        if log is None or log.recovery is None:
            continue
        state = states.read(key, _NO_LEADER)
        end_offset = log.end_offset
        last_offset = max((batch.last_offset for batch in state.state_batches), default=-1)
        if max(state.start_offset, last_offset + 1) > end_offset:
            _log.warning(
                "%s-%s ends at %d: what share group %s has said of later records is forgotten",
                *(log.topic, log.index, end_offset, key.group_id),
            )
            _begin_anew(states, key, state, end_offset)


def _begin_anew(
    states: ShareCoordinator, key: SharePartitionKey, state: SharePartitionState, end_offset: int
) -> None:
    start_offset = min(state.start_offset, end_offset)
    left = tuple(
        batch._replace(last_offset=min(batch.last_offset, end_offset - 1))
        for batch in state.state_batches
        if batch.first_offset < end_offset
    )
    outcome = states.initialize(key, state.state_epoch, start_offset)
    if outcome.error_code is ErrorCode.NONE and left:
        outcome = states.write(
            key,
            state_epoch=state.state_epoch,
            leader_epoch=_NO_LEADER,
            start_offset=start_offset,
            delivery_complete_count=sum(
                batch.last_offset - batch.first_offset + 1
                for batch in left
                if batch.delivery_state is not DeliveryState.AVAILABLE
            ),
            state_batches=left,
        )
    if outcome.error_code is not ErrorCode.NONE:
        _log.error("%s: that is not kept: %s", key, outcome.error_message)
