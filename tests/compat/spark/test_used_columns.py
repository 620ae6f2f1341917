"""Which columns a query uses, as the text of a plan tells it."""

from __future__ import annotations

import pytest

from logstore.compat.spark.columns import COLUMN_TYPES
from logstore.compat.spark.used_columns import used_by_text

ONE = "RelationV2[key#1, value#2, topic#3, offset#4L] logstore"
OTHER = "RelationV2[key#11, value#12, topic#13, offset#14L] logstore"
NONE: set[str] = set()


def explained(*lines: str) -> str:
    """Return what Spark prints of a plan."""
    before = f"== Analyzed Logical Plan ==\nkey: binary\nProject [key#1, topic#3]\n+- {ONE}"
    text = "\n".join(lines)
    return f"{before}\n\n== Optimized Logical Plan ==\n{text}\n\n== Physical Plan ==\nScan value#2"


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ([ONE], {"key", "value", "topic", "offset"}),
        (["Filter (offset#4L > 3)", f"+- {ONE}"], {"key", "value", "topic", "offset"}),
        (["Project [key#1]", "+- Filter (offset#4L > 3)", f"   +- {ONE}"], {"key", "offset"}),
        (["Aggregate [count(1) AS n#9L]", "+- Project", f"   +- {ONE}"], NONE),
        (
            ["Aggregate [key#1], [key#1]", "+- Union false, false", f"   :- {ONE}",
             f"   +- {OTHER}"],
            {"key", "value", "topic", "offset"},
        ),
        (
            ["Union false, false", ":- Project [key#1]", f":  +- {ONE}", "+- Project [topic#13]",
             f"   +- {OTHER}"],
            {"key", "topic"},
        ),
        (
            ["Project [topic#3, scalar-subquery#50 [] AS most#60L]",
             ":  +- Aggregate [max(offset#14L) AS most#52L]", ":     +- Project [offset#14L]",
             f":        +- {OTHER}", "+- Filter isnotnull(value#2)", f"   +- {ONE}"],
            {"topic", "value", "offset"},
        ),
        # a line break in a text of the query: too many, never too few
        (["Project [concat(a", "b, key#1) AS x#7]", f"+- {ONE}"],
         {"key", "value", "topic", "offset"}),
        (["Project [key#1, ... 30 more fields]", f"+- {ONE}"], set(COLUMN_TYPES)),
        (["LocalRelation [key#1]"], None),
    ],
)  # fmt: skip
def test_columns_that_a_plan_names(lines: list[str], names: set[str] | None) -> None:
    """Those that some node above a scan names; all where none says what it takes."""
    assert used_by_text(explained(*lines)) == names
