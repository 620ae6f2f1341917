"""
The order in which topics that are to grow are looked at: who pays for it first, and is told first.

Source: ``ControllerApis.createPartitions``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from logstore.compat.kafka.groups.modern.hash_order import members_in_order


def in_growing_order(names: Iterable[str]) -> list[str]:
    """Return each name once: those that come twice are refused first, the others as Java walks."""
    counts = Counter(names)
    return sorted(members_in_order(counts), key=lambda one: counts[one] == 1)
