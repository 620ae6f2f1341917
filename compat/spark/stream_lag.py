"""
How far a streaming query is behind, as its progress shows it.

Spark asks a source how far it goes each time it plans a micro-batch, and puts that beside the
batch's end (``latestOffset`` and ``endOffset`` of ``query.lastProgress``). Metrics of its own, as
Spark's Kafka source has, a source in Python cannot report: the difference is taken here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast


def lag(progress: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    """
    Return by (topic, partition) how many offsets the query has not taken yet.

    `progress` is ``query.lastProgress``, an event's progress, or what their ``json`` holds. Of a
    query with several sources those that are no stores are passed over.
    """
    found: dict[tuple[str, int], int] = {}
    for source in progress["sources"]:
        latest, end = (_places(source.get(name)) for name in ("latestOffset", "endOffset"))
        for key, place in latest.items():
            found[key] = found.get(key, 0) + max(0, place - end.get(key, 0))
    return found


def _places(offset: object) -> dict[tuple[str, int], int]:
    """Return the offset of a stream by partition; nothing if it is none of ours."""
    if isinstance(offset, str):
        offset = json.loads(offset)
    if not isinstance(offset, Mapping):
        return {}
    topics = cast("Mapping[str, Any]", offset)
    if not all(isinstance(places, Mapping) for places in topics.values()):
        return {}
    return {
        (topic, int(index)): place
        for topic, places in topics.items()
        for index, place in places.items()
    }
