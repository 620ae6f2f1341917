"""Why an application cannot run with the topics that there are."""

from __future__ import annotations

from logstore.compat.kafka.groups.streams.states import StatusCode
from logstore.errors import LogStoreError


class TopicConfigurationError(LogStoreError):
    """Topics are missing or partitioned in the wrong way; members are told so, by status."""

    def __init__(self, status: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
