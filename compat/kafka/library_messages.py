"""Requests as the library has them, also of the APIs that are served by hand."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.connection import message_class
from logstore.compat.kafka.whole_requests import decode_whole

if TYPE_CHECKING:
    from logstore.compat.kafka.registry import Api, RawRequest

#: the library's modules of the APIs that are read by hand; it does not know groups of KIP-848,
#: share and streams groups
_MODULES = {
    "Produce": "producer.produce",
    "Fetch": "consumer.fetch",
    "Metadata": "metadata.metadata",
    "ApiVersions": "metadata.api_versions",
    "ListOffsets": "consumer.offsets",
    "OffsetCommit": "consumer.group",
    "OffsetFetch": "consumer.group",
    "CreateTopics": "admin.topics",
    "InitProducerId": "producer.transaction",
    "DescribeTopicPartitions": "admin.topics",
    "DescribeGroups": "admin.groups",
    "ListGroups": "admin.groups",
}


def library_class(api: Api, kind: str) -> Any:
    """Return the library's class of a request or response; None if it has none."""
    if api.module:
        return message_class(api, kind)
    module = _MODULES.get(api.name)
    if module is None:
        return None
    return getattr(importlib.import_module(f"kafka.protocol.{module}"), api.name + kind)


def decoded(api: Api, request: RawRequest) -> Any:
    """Return a request; None if the library does not know its API."""
    kind = library_class(api, "Request")
    body = bytes(request.data[request.position :])
    return None if kind is None else decode_whole(kind, body, request.version)
