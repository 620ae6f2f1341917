"""What tests of fetches look at."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.fetch.sessions import FetchPartition
from logstore.segments.kafka.partition import KafkaPartition


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the number of every partition comes that a fetch looks at."""
    found: list[int] = []
    looked_at = FetchPartition.looked_at

    def counted(wanted: FetchPartition, log: KafkaPartition, siblings: Any) -> None:
        found.append(wanted.key[1])
        looked_at(wanted, log, siblings)

    monkeypatch.setattr(FetchPartition, "looked_at", counted)
    return found
