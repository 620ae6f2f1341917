"""
Under which names a rest (see ``compat/MAPPING.md``) stands in what is stored, and how.

In RocketMQ's layout a property is text, so the rest is base64 there; a Kafka header takes it as it
is. Neither protocol shows these names to clients while it is bridged.
"""

from __future__ import annotations

import base64
import binascii

from logstore.compat.record_mapping import MappingError

#: the property of a message that was a record
RECORD_REST_PROPERTY = "__KAFKA_RECORD"
#: what stands in the text of properties where the property begins
RECORD_REST_NEEDLE = RECORD_REST_PROPERTY.encode() + b"\x01"
#: the header of a record that was a message
MESSAGE_REST_HEADER = "__rocketmq_message"
#: what stands in the bytes of an uncompressed batch where the header is
MESSAGE_REST_NEEDLE = MESSAGE_REST_HEADER.encode()


def rest_as_text(rest: bytes) -> str:
    """Return the value of the property."""
    return base64.b64encode(rest).decode()


def rest_of_text(text: str) -> bytes:
    """
    Return the rest that the property holds.

    Raises:
        MappingError: it is no base64.

    """
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise MappingError(f"the property {RECORD_REST_PROPERTY} is no base64: {error}") from error
