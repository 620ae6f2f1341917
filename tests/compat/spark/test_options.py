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
from logstore.compat.spark.offset_bounds import EARLIEST, LATEST, Bound
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import TriggerOptions, parse_options


def test_nothing_but_a_path_reads_all_that_is_committed() -> None:
    """The defaults: Spark's Kafka columns, from the earliest to the latest, fail on damage."""
    options = parse_options({"path": "DIR"})
    assert (options.columns, options.mode) == (DEFAULT_COLUMNS, "failfast")
    assert (options.start.everywhere, options.end.everywhere) == (EARLIEST, LATEST)
    assert options.is_committed_only
    assert options.wants("t", 3)
    assert not options.wants("__consumer_offsets", 0)


def test_several_paths_are_one_location() -> None:
    """As ``.load([...])`` tells them."""
    assert parse_options({"paths": '["/disk1/kafka","/disk2/kafka"]'}).path == (
        "/disk1/kafka,/disk2/kafka"
    )
    for options in ({}, {"paths": "[]"}, {"path": ""}):
        with pytest.raises(OptionError, match="must name the store's directory"):
            parse_options(options)


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
    given = {"path": "d", "startingOffsets": '{"a": {"0": 5, "1": -1}}'}
    start = parse_options(given, is_stream=True).start
    assert start.offsets == {("a", 0): 5, ("a", 1): LATEST}
    assert parse_options({"path": "d", "startingOffsets": " Earliest "}).start == Bound(EARLIEST)
    end = parse_options({"path": "d", "endingTimestamp": "1000"}).end
    assert end.time_of("a", 0) == 1000
    timed = parse_options({"path": "d", "startingOffsetsByTimestamp": '{"a": {"1": 77}}'}).start
    assert (timed.time_of("a", 1), timed.time_of("a", 0)) == (77, None)


def test_one_time_for_all_goes_over_times_by_partition_and_these_over_offsets() -> None:
    """Spark's order."""
    given = {
        "path": "d",
        "startingTimestamp": "5",
        "startingOffsetsByTimestamp": '{"a": {"0": 7}}',
        "startingOffsets": '{"a": {"0": 9}}',
    }
    assert parse_options(given).start == Bound(EARLIEST, timestamp_ms=5)
    del given["startingTimestamp"]
    assert parse_options(given).start == Bound(EARLIEST, timestamps={("a", 0): 7})
    del given["startingOffsetsByTimestamp"]
    assert parse_options(given).start == Bound(EARLIEST, {("a", 0): 9})


def test_a_pattern_leaves_out_what_is_kafkas_own() -> None:
    """As Spark's does, which asks for topics that are not internal; another name may begin so."""
    options = parse_options({"path": "d", "subscribePattern": " .* "})
    assert options.wants("__mine", 0)
    assert not options.wants("__consumer_offsets", 0)
    assert not options.wants("__share_group_state", 0)


def test_the_consumers_isolation_is_ours_where_ours_is_not_given() -> None:
    """Options that were written for Spark's Kafka source mean what they meant."""
    given = {
        "path": "d",
        "kafka.isolation.level": "read_uncommitted",
        "kafka.max.poll.records": "1",
    }
    assert not parse_options(given).is_committed_only
    assert parse_options(given | {"isolation": "read_committed"}).is_committed_only


def test_options_of_micro_batches_are_read() -> None:
    """Numbers of offsets, and a time span with a unit or without one."""
    given = {"path": "d", "maxOffsetsPerTrigger": "9", "minOffsetsPerTrigger": "3"}
    assert parse_options(given).trigger == TriggerOptions(9, 3, 15 * 60 * 1000)
    for text, delay_ms in (("500", 500), ("30s", 30_000), ("2 H", 7_200_000), ("1d", 86_400_000)):
        assert (
            parse_options({"path": "d", "maxTriggerDelay": text}).trigger.delay_ms_max == delay_ms
        )


def test_loss_counts_in_streams_and_where_it_is_asked_about() -> None:
    """A batch query reads what is there, unless it says otherwise."""
    assert not parse_options({"path": "d"}).fails_on_loss
    assert parse_options({"path": "d"}, is_stream=True).fails_on_loss
    assert parse_options({"path": "d", "failOnDataLoss": "TRUE"}).fails_on_loss


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subscribe": "a", "assign": "{}"}, "assign: '{}' cannot stand beside subscribe"),
        ({"subscribe": "a", "subscribePattern": "b"}, "subscribePattern: 'b' cannot stand beside"),
        (
            {"startingOffsets": '{"a": {"0": 9}}', "endingOffsets": '{"a": {"0": 8}}'},
            "endingOffsets: 8 lies before the start of a-0, 9",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"a": {"1": 9}}',
                "endingOffsetsByTimestamp": '{"a": {"0": 4, "1": 8}}',
            },
            "endingOffsetsByTimestamp: 8 lies before the start of a-1, 9",
        ),
        (
            {"startingTimestamp": "9", "endingTimestamp": "8"},
            "endingTimestamp: 8 lies before the start, 9",
        ),
        (
            {"maxOffsetsPerTrigger": "2", "minOffsetsPerTrigger": "3"},
            "is above maxOffsetsPerTrigger",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    given: dict[str, str], message: str
) -> None:
    """Rather than one of them being passed over, or no row found."""
    with pytest.raises(OptionError) as caught:
        parse_options({"path": "d", **given})
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    """Whoever says one is told so."""
    with pytest.raises(OptionError, match=rf"{name}: .* is for batch queries"):
        parse_options({"path": "d", name: "5"}, is_stream=True)


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
        ("startingOffsets", '{"a": {"0": -3}}', "neither an offset nor"),
        ("startingOffsets", '{"a": {"0": -1}}', "starts behind everything"),
        ("endingOffsets", '{"a": {"0": -2}}', "ends before anything"),
        ("startingOffsetsByTimestamp", '{"a": {"0": -1}}', "is no time"),
        ("startingTimestamp", "-1", "at least 0"),
        ("startingOffsetsByTimestampStrategy", "earliest", "latest, error"),
        ("subscribe", " , ", "names no topic"),
        ("subscribePattern", " ", "is empty"),
        ("subscribePattern", "[", "is no pattern"),
        ("assign", '{"a": ["0"]}', "must look like"),
        ("minPartitions", "0", "at least 1"),
        ("maxRecordsPerPartition", "0", "at least 1"),
        ("includeHeaders", "yes", "false, true"),
        ("failOnDataLoss", "no", "false, true"),
        ("maxTriggerDelay", "soon", "must be a time span"),
        ("maxTriggerDelay", "3 weeks", "must be a time span"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(option: str, value: str, message: str) -> None:
    """The error names the option and says what it may be."""
    with pytest.raises(OptionError, match=f"option {option}:") as caught:
        parse_options({"path": "d", option: value})
    assert message in str(caught.value)


def test_columns_are_checked_and_typed() -> None:
    """Any case, each once; an unknown one is named with all that there are."""
    assert checked_columns(["Topic", " OFFSET ", "topic"]) == ("topic", "offset")
    assert ddl_of(("topic", "offset")) == "`topic` STRING, `offset` BIGINT"
    with pytest.raises(UnknownColumnError, match="'nosuch'") as caught:
        checked_columns(["nosuch"])
    assert all(name in str(caught.value) for name in COLUMN_TYPES)
