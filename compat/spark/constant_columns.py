"""Arrow columns whose rows are all alike: made once, cut to the length of each batch."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from logstore.segments.kafka.columns import of_numbers

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
            array = pa.repeat(_scalar(value, kind), count)
            self._made[name] = (value, array)
        return array.slice(0, count)


def _scalar(value: object, kind: Any) -> Any:
    """Return null, a text or a number as ``pyarrow.scalar()`` does, which would load pandas."""
    if value is None:
        return pa.nulls(1, kind)[0]
    if isinstance(value, str):
        text = value.encode()
        bounds = np.array([0, len(text)], dtype=np.int32)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(text)]
        return pa.Array.from_buffers(kind, 1, buffers)[0]
    return of_numbers(np.array([value], dtype=f"i{kind.bit_width // 8}"), kind)[0]
