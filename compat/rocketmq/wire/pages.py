"""Long lists asked for page by page (5.x); those who do not ask so get all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import attrs

from logstore.compat.rocketmq.wire.bodies import read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.settings import Settings

ItemT = TypeVar("ItemT")


@attrs.frozen
class Paging:
    """By which fields a part of a list is asked for."""

    start_name: str
    count_name: str

    def page_of(
        self,
        fields: Mapping[str, str],
        items: Sequence[ItemT],
        version: DataVersion,
        settings: Settings,
    ) -> Sequence[ItemT]:
        """
        Return the part of `items` that a request asks for, which may be all of them.

        Whoever goes on with a list that has another version by now, or does not say which one it
        has read, gets the first page.

        Raises:
            RefusedError: SYSTEM_ERROR; a version that cannot be read.

        """
        asks_for_page = fields.keys() & {self.start_name, self.count_name, "dataVersion"}
        if not (asks_for_page and settings.has_pages):
            return items
        start = max(read_int(fields, self.start_name, 0), 0)
        if start and not _is_of(fields.get("dataVersion", ""), version):
            start = 0
        count_max = settings.page_count_max
        return items[start : start + min(read_int(fields, self.count_name, count_max), count_max)]


def _is_of(text: str, version: DataVersion) -> bool:
    """Tell whether a version that was read before is still that of the list."""
    if not text.strip():
        return False
    try:
        return DataVersion.from_json(read_object(text.encode())) == version
    except JsonTypeError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"dataVersion: {error}") from error
