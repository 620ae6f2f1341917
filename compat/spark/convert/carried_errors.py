"""
Errors that come out of Spark's workers as they went in.

What a worker raises reaches the driver as text inside of Spark's own error. So that a person reads
one line that names file and position, and not two tracebacks, our errors and those of the system
are packed into that text, and unpacked in the driver.
"""

from __future__ import annotations

import base64
import pickle
import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs

from logstore.errors import LogStoreError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_MARK = "logstore-error:"
_PACKED = re.compile(_MARK + r"([A-Za-z0-9+/=]+)")


class CarriedError(Exception):
    """Stands for another error; its text is that one, packed."""


@attrs.frozen
class Carrying(Generic[ItemT, ResultT]):
    """Calls a function in a worker; what it raises can be unpacked in the driver."""

    function: Callable[[ItemT], ResultT]

    def __call__(self, item: ItemT) -> ResultT:
        """
        Return what the function returns.

        Raises:
            CarriedError: the function raised an error of ours, or of the system.

        """
        try:
            return self.function(item)
        except (LogStoreError, OSError) as error:
            raise CarriedError(f"{error} {packed(error)}") from error


def packed(error: LogStoreError | OSError) -> str:
    """Return an error as text without spaces."""
    args = error.args
    if isinstance(error, OSError) and error.filename is not None:
        args = (error.errno, error.strerror, error.filename)
    data = pickle.dumps((type(error), args, vars(error)))
    return _MARK + base64.b64encode(data).decode()


def unpacked(text: str) -> Exception | None:
    """Return the first error that was packed into a text, None without any."""
    found = _PACKED.search(text)
    if found is None:
        return None
    kind: type[Exception]
    args: tuple[Any, ...]
    fields: dict[str, Any]
    kind, args, fields = pickle.loads(base64.b64decode(found[1]))  # noqa: S301 - our own worker's
    error = kind.__new__(kind, *args)
    error.args = args if not isinstance(error, OSError) else args[:2]
    vars(error).update(fields)
    return error
