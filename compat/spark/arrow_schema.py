"""A schema of Spark's as Arrow has it, by whichever release of Spark."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_types: Any = importlib.import_module("pyspark.sql.pandas.types")
#: must be said since 4.2; before that timestamps were those of UTC unless somebody said otherwise
_ZONE = (
    {"timezone": "UTC"}
    if "timezone" in inspect.signature(_types.to_arrow_schema).parameters
    else {}
)


def arrow_schema(schema: StructType) -> Any:
    """Return the ``pyarrow.Schema`` of a schema; timestamps are microseconds of UTC."""
    return _types.to_arrow_schema(schema, **_ZONE)
