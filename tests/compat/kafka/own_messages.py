"""The messages of an API that are our own, because the library lacks them."""

from __future__ import annotations

from typing import Any

from logstore.compat.kafka.delegation_tokens import messages as of_tokens
from logstore.compat.kafka.groups.consumer import messages as of_consumers
from logstore.compat.kafka.groups.share import messages as of_shares
from logstore.compat.kafka.groups.streams import messages as of_streams
from logstore.compat.kafka.nodes import quorum_messages as of_quorum
from logstore.compat.kafka.registry import Api
from logstore.compat.kafka.share_reads import messages as of_reads
from logstore.compat.kafka.share_state import messages as of_state
from logstore.segments.kafka.internal_topics.schema import Message

_MODULES = (of_consumers, of_shares, of_streams, of_reads, of_state, of_tokens, of_quorum)
_SHARED = {
    39: of_tokens.TokenExpiryResponse,
    40: of_tokens.TokenExpiryResponse,
    64: of_quorum.OutcomeResponse,
    80: of_quorum.OutcomeResponse,
    81: of_quorum.OutcomeResponse,
}
_KINDS: dict[str, Any] = {name: kind for one in _MODULES for name, kind in vars(one).items()}


def own_messages(api: Api) -> tuple[type[Message], type[Message]]:
    """Return the classes of an API's request and response."""
    shared = _SHARED.get(api.key, of_state.StateOutcomeResponse)
    response = _KINDS.get(f"{api.name}Response", shared)
    return _KINDS[f"{api.name}Request"], response
