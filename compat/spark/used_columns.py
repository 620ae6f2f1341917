"""Which columns of stores a query depends on, by the plan that Spark made of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from logstore.compat.spark.columns import COLUMN_TYPES
from logstore.compat.spark.connect import is_connected

if TYPE_CHECKING:
    from collections.abc import Generator

    from pyspark.sql import DataFrame

_SCAN = "DataSourceV2ScanRelation"
_OPTIMIZED = "== Optimized Logical Plan ==\n"
_PHYSICAL = "== Physical Plan =="
#: a line of a plan's text: how deep it is, the node's name, and what it says
_NODE = re.compile(r"(?P<depth>[ :]*(?:[+:]- )?)(?P<name>\w+)(?P<rest>.*)")
_SCAN_TEXT = "RelationV2"
_ATTRIBUTE = re.compile(r"(\w+)#(\d+)")
#: nodes that hand on only what they name
_NARROWING = {"Project", "Aggregate"}
#: whose columns are those of their children by place, and not by name
_BY_PLACE = {"Union"}
_FIELDS_MAX = "spark.sql.debug.maxToStringFields"
_FIELDS_LEFT_OUT = " more fields"


def used_columns(frame: DataFrame) -> set[str] | None:
    """Return the names of all columns of stores that a result depends on; None if it reads none."""
    inner: Any = frame
    if is_connected(inner.sparkSession):
        with _whole_plans(inner.sparkSession):
            text: str = inner._explain_string(extended=True)
        return used_by_text(text)
    plan = inner._jdf.queryExecution().optimizedPlan()
    names = _names(plan.output())
    has_scan = False
    for node in _nodes(plan):
        if node.children().size():
            names |= _names(node.references().toSeq())
        elif node.nodeName().startswith(_SCAN) or node.getClass().getSimpleName() == _SCAN:
            has_scan = True
    return names & COLUMN_TYPES.keys() if has_scan else None


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield a plan's nodes, those of the queries inside of its expressions too."""
    yield plan
    for inner in (plan.children(), plan.subqueries()):
        for number in range(inner.size()):
            yield from _nodes(inner.apply(number))


def _names(attributes: Any) -> set[str]:
    return {attributes.apply(number).name() for number in range(attributes.size())}


@contextmanager
def _whole_plans(spark: Any) -> Generator[None]:
    """Let plans be printed with all their fields, where a server takes such settings."""
    from pyspark.errors import PySparkException

    before = None
    try:
        before = spark.conf.get(_FIELDS_MAX, None)
        spark.conf.set(_FIELDS_MAX, "10000")
    except PySparkException:
        yield  # it keeps its settings; the text says where it leaves some out
        return
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_FIELDS_MAX)
        else:
            spark.conf.set(_FIELDS_MAX, before)


def used_by_text(text: str) -> set[str] | None:
    """
    Return what :func:`used_columns` does, of a plan that was explained at length.

    All columns where Spark has left some out of the text. A scan's own line names all that it
    could give: of these count the ones that other lines name, or all where no node above it says
    which it wants.
    """
    optimized = text.partition(_OPTIMIZED)[2].partition(_PHYSICAL)[0]
    lines = [_NODE.fullmatch(line) for line in optimized.splitlines()]
    nodes = [(len(line["depth"]), line["name"], line["rest"]) for line in lines if line is not None]
    scans = [number for number, node in enumerate(nodes) if node[1] == _SCAN_TEXT]
    if not scans:
        return None
    if _FIELDS_LEFT_OUT in optimized:
        return set(COLUMN_TYPES)
    wanted = {
        number
        for _, name, rest in nodes
        if name != _SCAN_TEXT
        for _, number in _ATTRIBUTE.findall(rest)
    }
    names = {
        name
        for place in scans
        for name, number in _ATTRIBUTE.findall(nodes[place][2])
        if number in wanted or not _is_narrowed(nodes, place)
    }
    return names & COLUMN_TYPES.keys()


def _is_narrowed(nodes: Sequence[tuple[int, str, str]], place: int) -> bool:
    """Tell whether a node above names the columns that it takes of a scan."""
    depth = nodes[place][0]
    for above, name, _ in reversed(nodes[:place]):
        if above < depth:
            if name in _NARROWING:
                return True
            if name in _BY_PLACE:
                return False
            depth = above
    return False
