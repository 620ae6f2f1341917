"""
Creating, growing and deleting topics within a limit of partitions a second.

Topics are changed one after the other, and each pays for its partitions. Since KIP-599's versions a
client in debt is refused (89) what is left of its request; before it is only told to keep still.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.error_answers import failed_answer
from logstore.compat.kafka.message_handlers import ask_handler, read_message, write_answer
from logstore.compat.kafka.quotas.client_quotas import (
    CONTROLLER_MUTATION_RATE,
    ClientQuotas,
    Limit,
)

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.waiting import Later

_CREATE, _DELETE = 19, 20
_EXCEEDED = "The throttling quota has been exceeded."
_IDS_SINCE = 6


class _Change(NamedTuple):
    """How an API names what it changes, and from which version on it refuses who is in debt."""

    elements: str
    results: str
    strict_since: int


_CHANGES = {
    19: _Change("topics", "topics", 6),
    20: _Change("topics", "responses", 5),
    37: _Change("topics", "results", 3),
}
