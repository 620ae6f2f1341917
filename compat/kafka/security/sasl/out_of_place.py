"""
The answer to a request that comes in place of a token: 34, as its kind tells of errors.

Source: ``SaslServerAuthenticator.handleSaslToken``, ``getErrorResponse`` of every request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.apis.api_18_api_versions import refused
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.error_answers import error_answer
from logstore.compat.kafka.library_messages import decoded
from logstore.compat.kafka.security.sasl.exchange import StumbledError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.registry import Api, RawRequest

#: APIs whose answers tell what the code means, whatever happened
_GENERAL = frozenset({10, 32, 49, 80, 81, 84, 85, 87, 90, 91, 92})
#: those whose answers have place for a text, and none in it
_SILENT = frozenset({15, 20, 68, 69, 76, 77, 78, 79, 83, 86, 88, 89})
_DESCRIBE_PASSWORDS = 50
_MEANING = "Request is not valid given the current SASL state."


def answer_out_of_place(broker: Broker, api: Api, request: RawRequest) -> list[Chunk] | None:
    """
    Return the frame that says so; None for a request that is not answered (acks 0).

    Raises:
        StumbledError: Kafka stumbles over it.

    """
    if api.key == _DESCRIBE_PASSWORDS and decoded(api, request).users is None:
        raise StumbledError("everybody's passwords are asked for in place of a token")
    text = f"Unexpected Kafka request of type {_type_of(api.name)} during SASL authentication."
    if api.key in _GENERAL:
        text = _MEANING
    elif api.key in _SILENT:
        text = ""
    return error_answer(broker, api, request, ErrorCode.ILLEGAL_SASL_STATE, text)


def versions_out_of_place(correlation_id: int) -> list[Chunk]:
    """Return the frame that says so of an ApiVersions in a version that there is not."""
    return [refused(correlation_id, ErrorCode.ILLEGAL_SASL_STATE)]


def _type_of(name: str) -> str:
    """Return an API's name as Kafka's enum has it: ``LIST_OFFSETS``."""
    return "".join(f"_{sign}" if sign.isupper() else sign.upper() for sign in name).lstrip("_")
