"""SQL92 filters: what Java's parser and evaluator say, and what real consumers got."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.segments.rocketmq.filters.sql_expressions import Expression
from logstore.segments.rocketmq.filters.sql_filter import matches_sql
from logstore.segments.rocketmq.filters.sql_parser import LINKS_MAX, NESTING_MAX, compile_sql
from logstore.segments.rocketmq.filters.sql_tokens import SqlSyntaxError
from logstore.segments.rocketmq.filters.sql_values import SqlEvaluationError, double_of, integer_of

#: asked of the parser and evaluator of rocketmq-filter 5.5.0: random expressions and properties
ANSWERS = Path(__file__).resolve().parents[3] / "golden/rocketmq/sql-filters-5.5.0.jsonl"


def java_answers() -> list[dict[str, Any]]:
    """Return the recorded expressions with their answers."""
    lines = ANSWERS.read_text(encoding="utf-8").split("\n")
    return [row for line in lines if line and "sql" in (row := json.loads(line))]


def answer(expression: str, properties: dict[str, str]) -> str:
    """Return what an expression gives over properties, as Java prints it."""
    try:
        compiled = compile_sql(expression)
    except SqlSyntaxError:
        return "INVALID"
    try:
        return {None: "null", True: "true", False: "false"}[compiled.evaluate(properties)]  # type: ignore[index]
    except SqlEvaluationError:
        return "ERROR"


@pytest.mark.parametrize("kind", ["INVALID", "ERROR", "null", "true", "false"])
def test_as_java(kind: str) -> None:
    """Every recorded expression gives what Java's own evaluator gave."""
    rows = [row for row in java_answers() if row["java"] == kind]
    assert len(rows) >= 80
    wrong = [row for row in rows if answer(row["sql"], row["properties"]) != kind]
    assert wrong == []


@pytest.mark.parametrize(
    ("expression", "properties", "expected"),
    [
        ("a > 5", {"a": "6"}, "true"),
        ("a > 5", {"a": "6.5"}, "ERROR"),
        ("a > 5.0", {"a": "6.5"}, "true"),
        ("a > 5", {}, "null"),
        ("a > 5 OR b = 'x'", {"a": "six", "b": "x"}, "ERROR"),
        ("b = 'x' OR a > 5", {"a": "six", "b": "x"}, "true"),
        ("a > 5 AND b = 'x'", {"b": "y"}, "false"),
        ("a > b", {"a": "10", "b": "9"}, "true"),
        ("a = b", {}, "true"),
        ("a = b", {"a": "1"}, "false"),
        ("a = b", {"b": "1"}, "null"),
        ("a <> 'x'", {}, "null"),
        ("a IS NULL", {}, "true"),
        ("a is not null", {"a": "1"}, "true"),
        ("a = TRUE", {"a": "TrUe"}, "true"),
        ("TRUE = a", {"a": "true"}, "ERROR"),
        ("a", {"a": "true"}, "false"),
        ("NOT a", {"a": "true"}, "true"),
        ("NOT a > 1", {}, "INVALID"),
        ("NOT (a > 1)", {"a": "1"}, "true"),
        ("a BETWEEN 2 AND 4", {"a": "4"}, "true"),
        ("a BETWEEN 4 AND 2", {}, "INVALID"),
        ("a NOT BETWEEN 4 AND 2", {"a": "3"}, "true"),
        ("a BETWEEN -1 AND 1", {"a": "-1"}, "true"),
        ("a IN ('x', 'it''s')", {"a": "it's"}, "true"),
        ("a NOT IN ('x')", {}, "null"),
        ("a IN (1)", {}, "INVALID"),
        ("'a' IN ('a')", {}, "INVALID"),
        ("a > 'x'", {}, "INVALID"),
        ("a = NULL", {}, "INVALID"),
        ("TRUE = 5", {}, "INVALID"),
        ("5 = TRUE", {}, "false"),
        ("a CONTAINS 'b'", {"a": "abc"}, "true"),
        ("a NOT CONTAINS 'b'", {}, "false"),
        ("a STARTSWITH ''", {"a": "x"}, "false"),
        ("a NOT ENDSWITH 'c'", {"a": "abc"}, "false"),
        ("a = 0.0", {}, "INVALID"),
        ("a = 9223372036854775807", {"a": "9223372036854775807"}, "true"),
        ("a = 9223372036854775808", {}, "INVALID"),
        ("a = -3000000000", {"a": "-3000000000"}, "true"),
        ("a = 5", {"a": "3000000000"}, "ERROR"),
        ("a = 5 whatever follows", {"a": "5"}, "true"),
        ("a = 5 #", {}, "INVALID"),
        ("a = --5", {"a": "5"}, "true"),
        ("a = -- five\n5 /* or */", {"a": "5"}, "true"),
        ("", {}, "INVALID"),
    ],
)
def test_rules(expression: str, properties: dict[str, str], expected: str) -> None:
    """Each rule of the grammar and of three-valued logic, one at a time."""
    assert answer(expression, properties) == expected


def test_long_chains_and_nesting() -> None:
    """Chains of AND and OR may be as long as they like; nesting and odd chains have a limit."""
    chain = compile_sql(" OR ".join(f"a = {number}" for number in range(5000)))
    assert matches_sql(chain, {"a": "4999"})
    depth = NESTING_MAX - 1
    assert matches_sql(compile_sql("(" * depth + "a = 1" + ")" * depth), {"a": "1"})
    with pytest.raises(SqlSyntaxError, match="nested deeper"):
        compile_sql("(" * 5000 + "a = 1" + ")" * 5000)
    with pytest.raises(SqlSyntaxError, match="in chains"):
        compile_sql(" IS NULL".join(["a"] + [""] * (LINKS_MAX + 5)))
    deepest = "NOT ((" * (depth // 3) + "a = 1" + " IS NULL) = TRUE)" * (depth // 3)
    assert compile_sql(deepest).evaluate({"a": "1"}) in (True, False)


@given(st.text(max_size=60))
@example("'" * 59)
@example("/*" + "*" * 57)
def test_any_text(text: str) -> None:
    """Any text is an expression or a syntax error that says where, nothing else."""
    try:
        compiled = compile_sql(text)
    except SqlSyntaxError as error:
        position = error.position
    else:
        position = 0
        assert compiled.is_boolean
    assert 0 <= position <= len(text)


_WORDS = st.one_of(
    st.sampled_from(["a", "b", "1", "2.5", "-3", "'x'", "''", "TRUE", "FALSE", "NULL", "5L"]),
    st.sampled_from(["NOT", "AND", "OR", "BETWEEN", "IN", "IS", "CONTAINS", "STARTSWITH"]),
    st.sampled_from(["ENDSWITH", "(", ")", ",", "=", "<>", "<", "<=", ">", ">=", "-", "+"]),
)


@given(
    st.lists(_WORDS, max_size=25).map(" ".join),
    st.dictionaries(st.sampled_from("ab"), st.text(max_size=5)),
)
def test_any_words(text: str, properties: dict[str, str]) -> None:
    """Any sequence of words compiles or is refused, and evaluates to TRUE, FALSE, NULL or fails."""
    assert answer(text, properties) in ("INVALID", "ERROR", "null", "true", "false")


def test_unbounded_text_is_linear() -> None:
    """A long text that is no expression is refused at once, not after trying all ways."""
    for text in ("/*" + "*" * 200_000, "'" * 200_001, "a = " + "-" * 200_000, "9" * 200_000):
        with pytest.raises(SqlSyntaxError):
            compile_sql(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 5 ", 5.0),
        ("5d", 5.0),
        ("1.0f", 1.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("0x1p3", 8.0),
        ("1e400", float("inf")),
        ("-Infinity", float("-inf")),
    ],
)
def test_doubles(text: str, expected: float) -> None:
    """What Java's Double.valueOf reads is read."""
    assert double_of(text) == expected


@pytest.mark.parametrize("text", ["", "nan", "1_0", "inf", "٣.5", "0x10", "1 2", "d", "--1"])
def test_no_doubles(text: str) -> None:
    """What Java's Double.valueOf refuses is refused, whatever Python thinks of it."""
    with pytest.raises(SqlEvaluationError):
        double_of(text)


@pytest.mark.parametrize("text", ["", " 1", "1_0", "5.0", "0x10", "+", "2147483648"])
def test_no_integers(text: str) -> None:
    """What Java's Integer.valueOf refuses is refused."""
    with pytest.raises(SqlEvaluationError):
        integer_of(text)


def test_not_a_number_and_zeros() -> None:
    """Doubles are compared as Java's Double.compare does: NaN above all, -0.0 below 0.0."""
    assert answer("a > 5.0", {"a": "NaN"}) == "true"
    assert answer("a = b", {"a": "NaN", "b": "NaN"}) == "true"
    assert answer("a < b", {"a": "-0.0", "b": "0.0"}) == "true"


def test_compiled_once() -> None:
    """The same expression is compiled once."""
    first: Expression = compile_sql("cached = 'once'")
    assert compile_sql("cached = 'once'") is first
