"""Long lists asked for page by page (5.x); those who do not ask so get all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from logstore.compat.rocketmq.wire.fields import read_int

ItemT = TypeVar("ItemT")

#: a page holds no more (``splitMetadataSize``)
PAGE_COUNT_MAX = 1000


def page_of(
    fields: Mapping[str, str], items: Sequence[ItemT], start_name: str, count_name: str
) -> Sequence[ItemT]:
    """Return the part of `items` that a request asks for by the fields of these names."""
    if not fields.keys() & {start_name, count_name, "dataVersion"}:
        return items
    start = read_int(fields, start_name, 0)
    count = min(read_int(fields, count_name, PAGE_COUNT_MAX), PAGE_COUNT_MAX)
    return items[max(start, 0) : max(start, 0) + count]
