"""
ListPartitionReassignments (46): version 0.

* nothing is ever being reassigned, for that takes no time: an empty list, whatever is asked
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(
    broker: Broker, client: Client, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Answer that nothing moves."""
    from kafka.protocol.admin.topics import ListPartitionReassignmentsResponse

    del broker, client
    return ListPartitionReassignmentsResponse(
        version=request.API_VERSION, error_message=None, topics=[]
    )
