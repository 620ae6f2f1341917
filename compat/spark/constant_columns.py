"""Arrow columns whose rows are all alike: made once, cut to the length of each batch."""

from __future__ import annotations

import importlib
from typing import Any

#: it carries no types
pa: Any = importlib.import_module("pyarrow")


class ConstantColumns:
    """
    Gives out columns of one value, null included; each name's last one is kept.

    Making one costs as much as decoding a number a row, and a task shows the same topic, partition
    and file over and over.
    """

    def __init__(self) -> None:
        self._made: dict[str, tuple[object, Any]] = {}

    def column(self, name: str, value: object, kind: Any, count: int) -> Any:
        """Return `count` rows of `value`; a name has always the same `kind`."""
        known, array = self._made.get(name, (None, None))
        if array is None or known != value or len(array) < count:
            array = pa.repeat(pa.scalar(value, kind), count)
            self._made[name] = (value, array)
        return array.slice(0, count)
