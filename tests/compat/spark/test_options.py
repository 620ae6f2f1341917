"""The options of a read: what Spark's Kafka source calls them, and what they may be."""

from __future__ import annotations

import pytest

from logstore.compat.spark.columns import (
    COLUMN_TYPES,
    DEFAULT_COLUMNS,
    UnknownColumnError,
    checked_columns,
    ddl_of,
)
from logstore.compat.spark.options import EARLIEST, LATEST, OptionError, parse_options


def test_nothing_but_a_path_reads_all_that_is_committed() -> None:
    """The defaults: Spark's Kafka columns, from the earliest to the latest, fail on damage."""
    options = parse_options({"path": "DIR"})
    assert (options.columns, options.mode) == (DEFAULT_COLUMNS, "failfast")
    assert (options.start.everywhere, options.end.everywhere) == (EARLIEST, LATEST)
    assert options.is_committed_only
    assert options.wants("t", 3)
    assert not options.wants("__consumer_offsets", 0)


def test_names_are_taken_in_any_case() -> None:
    """Spark hands option names on in lower case."""
    options = parse_options({"PATH": "DIR", "includeheaders": "true", "SUBSCRIBE": "a, b"})
    assert options.columns == (*DEFAULT_COLUMNS, "headers")
    assert options.wants("a", 0)
    assert not options.wants("c", 0)


def test_a_choice_of_topics_may_name_internal_ones() -> None:
    """By list, by pattern of the whole name, and by partition."""
    assert parse_options({"path": "d", "subscribe": "__x"}).wants("__x", 0)
    by_pattern = parse_options({"path": "d", "subscribePattern": "or.*s"})
    assert by_pattern.wants("orders", 1)
    assert not by_pattern.wants("orders2", 1)
    assigned = parse_options({"path": "d", "assign": '{"a": [0, 2]}'})
    assert [assigned.wants("a", index) for index in range(3)] == [True, False, True]


def test_bounds_are_read_in_all_their_forms() -> None:
    """Words, offsets by partition, one time for all, and times by partition."""
    start = parse_options({"path": "d", "startingOffsets": '{"a": {"0": 5, "1": -1}}'}).start
    assert start.offsets == {("a", 0): 5, ("a", 1): LATEST}
    end = parse_options({"path": "d", "endingTimestamp": "1000"}).end
    assert end.time_of("a", 0) == 1000
    timed = parse_options({"path": "d", "startingOffsetsByTimestamp": '{"a": {"1": 77}}'}).start
    assert (timed.time_of("a", 1), timed.time_of("a", 0)) == (77, None)


def test_permissive_mode_adds_a_column_for_what_is_damaged() -> None:
    """As Spark's readers of files do."""
    assert parse_options({"path": "d", "mode": "PERMISSIVE"}).columns[-1] == "_corrupt"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("path", "", "load"),
        ("mode", "lenient", "failfast, permissive, dropmalformed"),
        ("isolation", "dirty", "read_committed, read_uncommitted"),
        ("splitBytes", "0", "at least 1"),
        ("splitBytes", "many", "whole number"),
        ("assign", "[]", "JSON object"),
        ("assign", "{", "no JSON"),
        ("assign", '{"a": 5}', "must look like"),
        ("startingOffsets", "latest", "starts behind everything"),
        ("endingOffsets", "earliest", "ends before anything"),
        ("startingOffsets", '{"a": [1]}', "must look like"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(option: str, value: str, message: str) -> None:
    """The error names the option and says what it may be."""
    with pytest.raises(OptionError, match=option) as caught:
        parse_options({"path": "d", option: value})
    assert message in str(caught.value)


def test_columns_are_checked_and_typed() -> None:
    """Any case, each once; an unknown one is named with all that there are."""
    assert checked_columns(["Topic", " OFFSET ", "topic"]) == ("topic", "offset")
    assert ddl_of(("topic", "offset")) == "`topic` STRING, `offset` BIGINT"
    with pytest.raises(UnknownColumnError, match="'nosuch'") as caught:
        checked_columns(["nosuch"])
    assert all(name in str(caught.value) for name in COLUMN_TYPES)
