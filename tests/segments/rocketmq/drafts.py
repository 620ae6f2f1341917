"""Messages for tests: what matters is said, all else is the same for all."""

from __future__ import annotations

from collections.abc import Mapping

from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_batch import (
    BatchItem,
    MessageBatchDraft,
    draft_batch,
    encode_batch_body,
)
from logstore.segments.rocketmq.messages.message_draft import MessageDraft, draft_message
from logstore.segments.rocketmq.messages.properties import encode_properties

BORN = HostAddress.of("10.0.0.5", 50000)
STORED = HostAddress.of("10.0.0.1", 10911)
BORN_MS = 1_699_999_999_000


def draft(
    topic: str = "TopicTest",
    body: bytes = b"hello",
    queue_id: int = 0,
    *,
    properties: Mapping[str, str] | None = None,
    sys_flag: int = 0,
    has_property_crc: bool = False,
) -> MessageDraft:
    """Return a message to be put."""
    return draft_message(
        topic=topic,
        body=body,
        queue_id=queue_id,
        properties_text=encode_properties(properties or {}),
        sys_flag=sys_flag,
        born_timestamp_ms=BORN_MS,
        born_host=BORN,
        store_host=STORED,
        has_property_crc=has_property_crc,
    )


def batch(
    *bodies: bytes,
    topic: str = "TopicTest",
    queue_id: int = 0,
    properties: Mapping[str, str] | None = None,
    sys_flag: int = 0,
) -> MessageBatchDraft:
    """Return a client's batch to be put."""
    text = encode_properties(properties or {})
    return draft_batch(
        topic=topic,
        body=encode_batch_body(BatchItem(body, text) for body in bodies),
        queue_id=queue_id,
        sys_flag=sys_flag,
        born_timestamp_ms=BORN_MS,
        born_host=BORN,
        store_host=STORED,
    )
