"""The messages of an API that are our own, because the library lacks them."""

from __future__ import annotations

from typing import Any

from logstore.compat.kafka.groups.consumer import messages as of_consumers
from logstore.compat.kafka.groups.share import messages as of_shares
from logstore.compat.kafka.groups.streams import messages as of_streams
from logstore.compat.kafka.registry import Api
from logstore.compat.kafka.share_reads import messages as of_reads
from logstore.compat.kafka.share_state import messages as of_state
from logstore.segments.kafka.internal_topics.schema import Message

_MODULES = (of_consumers, of_shares, of_streams, of_reads, of_state)
_KINDS: dict[str, Any] = {name: kind for one in _MODULES for name, kind in vars(one).items()}


def own_messages(api: Api) -> tuple[type[Message], type[Message]]:
    """Return the classes of an API's request and response."""
    response = _KINDS.get(f"{api.name}Response", of_state.StateOutcomeResponse)
    return _KINDS[f"{api.name}Request"], response
