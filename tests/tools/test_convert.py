"""``logstore convert``: what it makes, says and refuses; here without Spark."""

from __future__ import annotations

import importlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from logstore.tools.commands.convert_progress import ConvertProgress
from logstore.tools.commands.spark_master import is_small
from logstore.tools.inspection.rocketmq.verification import store_check
from tests.segments.kafka.golden_case import GOLDEN
from tests.tools.command_line import CommandLine

pytest.importorskip("pyarrow", reason="pyarrow is missing: extra `columns`")
parquet: Any = importlib.import_module("pyarrow.parquet")

HERE = ("--master", "none")
SMALL = ("--set", "mappedFileSizeCommitLog=1048576", "--set", "maxHashSlotNum=100")
COUNT = 20


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A store that was stopped: a topic of two partitions, twenty records each."""
    store = KafkaStore(system_host(), str(tmp_path / "source"))
    topic = store.create_topic("orders", 2)
    for index, partition in topic.partitions.items():
        for number in range(COUNT):
            value = b"\xff\x00" if number == 3 else b"value %d" % number
            partition.append_records([Record(b"k%d" % index, value, 1_700_000_000_000 + number)])
    store.close()
    return tmp_path / "source"


def test_a_kafka_store_becomes_a_rocketmq_store_and_comes_back(
    source: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """Both targets are stores that the other commands know; what was done is said."""
    outcome = logstore("convert", source, tmp_path / "store", "--to", "rocketmq", *HERE, *SMALL)
    assert outcome.exit_code == 0, outcome.err
    assert outcome.out.startswith(f"{tmp_path / 'store'}: 40 records, ")
    outcome = logstore("convert", tmp_path / "store", tmp_path / "back", "--to", "kafka", *HERE)
    assert outcome.exit_code == 0, outcome.err
    store = KafkaStore(system_host(), str(tmp_path / "back"))
    records = store.partition("orders", 1).read_records(0, 100)
    store.close()
    assert [(r.key, r.value) for r in records[:4]] == [
        (b"k1", b"value 0"),
        (b"k1", b"value 1"),
        (b"k1", b"value 2"),
        (b"k1", b"\xff\x00"),
    ]
    assert len(records) == COUNT


@pytest.mark.parametrize("bulk_bytes_min", [0, 2**40], ids=["bulk", "one by one"])
def test_keys_and_times_may_be_as_long_and_as_far_as_they_like(
    tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch, bulk_bytes_min: int
) -> None:
    """What becomes of them is sound, and comes back."""
    store = KafkaStore(system_host(), str(tmp_path / "source"))
    settings = {f"message.timestamp.{way}.max.ms": str(2**63 - 1) for way in ("before", "after")}
    (partition,) = store.create_topic("odd", 1, settings).partitions.values()
    times = [1, 2**62, 0, 1_700_000_000_000]
    for time in times:
        partition.append_records([Record(b"k" * 20_000, b"value", time)])
    store.close()
    target, back = tmp_path / "store", tmp_path / "back"
    outcome = logstore("convert", tmp_path / "source", target, "--to", "rocketmq", *HERE, *SMALL)
    assert (outcome.exit_code, outcome.err) == (0, "")
    monkeypatch.setattr(store_check, "bulk_bytes_min", lambda: bulk_bytes_min)
    outcome = logstore("verify", target, "--set", "maxHashSlotNum=100")
    assert (outcome.exit_code, outcome.err) == (0, ""), outcome.out
    outcome = logstore("convert", target, back, "--to", "kafka", *HERE)
    assert (outcome.exit_code, outcome.err) == (0, "")
    with_times = KafkaStore(system_host(), str(back))
    found = with_times.partition("odd", 0).read_records(0, 100)
    with_times.close()
    assert [record.timestamp_ms for record in found] == times


def test_a_finished_target_is_left_as_it_is(
    source: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """The second run ends with 0 at once; one with other wishes is refused."""
    command = ("convert", source, tmp_path / "rows", "--to", "parquet", *HERE)
    assert logstore(*command).exit_code == 0
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "rows").iterdir())
    again = logstore(*command, "--json")
    assert (again.exit_code, again.json["new"], again.json["messages"]) == (0, False, 40)
    after = sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "rows").iterdir())
    assert after == before
    for wish, said in (
        (("--codec", "gzip"), "no codec named, not with codec gzip"),
        (("--topics", "a,b"), "all topics but internal ones, not with topics a,b"),
        (("--mode", "permissive"), "mode failfast, not with mode permissive"),
    ):
        other = logstore(*command, *wish)
        assert other.exit_code == 1
        assert f"was made with {said}; name another target" in other.err


def test_a_topic_that_is_not_there_is_told_by_the_option_that_named_it(
    source: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """Not by the one that Spark has for it."""
    wrong = ("--to", "jsonl", "--topics", "ordres", *HERE)
    outcome = logstore("convert", source, tmp_path / "rows", *wrong)
    assert outcome.exit_code == 1
    assert "option topics: 'ordres' is not in the store" in outcome.err


def test_parquet_files_hold_every_record(
    source: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """With the columns of the reader, and only what was asked for."""
    target = tmp_path / "rows"
    until = "2023-11-14T22:13:20.010Z"
    assert logstore(
        "convert", source, target, "--to", "parquet", "--until", until, *HERE
    ).exit_code == 0  # fmt: skip
    (path,) = target.glob("part-*.parquet")
    rows = parquet.read_table(path).to_pylist()
    assert [(row["partition"], row["offset"]) for row in rows] == [
        (partition, offset) for partition in (0, 1) for offset in range(10)
    ]
    assert rows[13]["value"] == b"\xff\x00"
    assert rows[13]["topic"] == "orders"
    assert rows[13]["timestamp"].timestamp() == 1_700_000_000.003


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_lines_of_json_hold_every_record(
    codec: str, source: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """Texts as they are, other bytes in base64; files are compressed if that is wished."""
    target = tmp_path / "rows"
    command = ("convert", source, target, "--to", "jsonl", "--codec", codec, *HERE)
    assert logstore(*command).exit_code == 0
    (path,) = target.glob("part-*")
    gzip, zstandard = importlib.import_module("gzip"), importlib.import_module("zstandard")
    opened: Any = {"none": io.open, "gzip": gzip.open, "zstd": zstandard.open}[codec]
    with opened(path, "rb") as file:
        rows = [json.loads(line) for line in file.read().splitlines()]
    assert len(rows) == 40
    assert (rows[2]["key"], rows[2]["value"]) == ("k0", "value 2")
    assert rows[3]["value"] == {"base64": "/wA="}
    assert rows[3]["timestamp"] == 1_700_000_000_003


def test_a_dry_run_tells_and_writes_nothing(
    source: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """Topics, records, bytes and tasks, without Spark."""
    (source / "orders-0").rename(source / "or.ders-0")
    (source / "orders-1").rename(source / "or.ders-1")
    before = sorted(path.name for path in tmp_path.iterdir())
    command = ("convert", source, tmp_path / "store", "--to", "rocketmq", "--dry-run")
    content = logstore(*command, "--json").json
    (topic,) = content["topics"]
    assert topic == {"topic": "or.ders", "target": "or%2Eders", "partitions": 2, "records": 40}
    size_bytes = sum(path.stat().st_size for path in source.glob("*/*.log"))
    internal = sum(path.stat().st_size for path in source.glob("__*/*.log"))
    assert content["bytes"] == size_bytes - internal
    assert content["tasks"] == 1
    assert "or.ders  or%2Eders" in logstore(*command).out
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_refusals_are_one_line_and_leave_nothing(
    source: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """Paths that are wrong, the same layout, a target that is there, topics and codecs."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    store = tmp_path / "store"
    cases: list[tuple[tuple[object, ...], str]] = [
        ((tmp_path / "nowhere", store, "--to", "rocketmq"), "there is no such directory"),
        ((source, store, "--to", "kafka"), "is a kafka store already"),
        ((source, tmp_path / "full", "--to", "rocketmq"), "is there already"),
        ((source, source / "inside", "--to", "rocketmq"), "must not lie in one another"),
        ((source, store, "--to", "rocketmq", "--topics", "nosuch"), "nosuch"),
        ((source, store, "--to", "jsonl", "--codec", "lz4"), "must be one of: none, gzip, zstd"),
        ((source, store, "--to", "rocketmq", "--codec", "lz4"), "is for batches of Kafka"),
    ]
    for arguments, message in cases:
        outcome = logstore("convert", *arguments, *HERE)
        assert outcome.exit_code == 1, (arguments, outcome)
        assert message in outcome.err
        assert outcome.err.count("\n") == 1
        assert not store.exists()
    assert (tmp_path / "full" / "file").read_text() == "mine"
    assert not (tmp_path / "store.converting").exists()
    for layout in ("rocketmq", "kafka", "jsonl"):
        outcome = logstore("convert", source, store, "--to", layout, "--set", "nosuch=1", *HERE)
        assert (outcome.exit_code, "has no such setting" in outcome.err) == (2, True)
    meant = logstore("convert", source, store, "--to", "kafka", "--set", "segment.byte=1", *HERE)
    assert "has no such setting; did you mean segment.bytes?" in meant.err


def test_progress_shows_rate_and_time_left() -> None:
    """One line a stage; what is behind is done."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=120)
    with ConvertProgress(console) as progress:
        progress("measuring", 0, 10_000_000)
        progress("writing", 5_000_000, 10_000_000)
    shown = text.getvalue()
    assert "measuring" in shown
    assert "10.0/10.0 MB" in shown
    assert "5.0/10.0 MB" in shown


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (
            ("--master", "local[2]"),
            "pip install 'logstore-segments[spark]'; without Spark, --master none",
        ),
        ((), "pip install 'logstore-segments[columns]'"),
        (HERE, "pip install 'logstore-segments[columns]'"),
        (("--dry-run",), "pip install 'logstore-segments[columns]'"),
    ],
)
def test_what_is_not_installed_is_named(
    tmp_path: Path,
    source: Path,
    logstore: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    remedy: str,
) -> None:
    """One line with the one installation that is enough, and nothing is begun."""

    def find_nothing(_: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", find_nothing)
    target = tmp_path / "target"
    outcome = logstore("convert", source, target, "--to", "rocketmq", *arguments)
    assert outcome.exit_code == 1
    assert outcome.err == f"logstore: convert needs numpy: {remedy}\n"
    assert not target.exists()


@pytest.mark.parametrize("words", [("rocketmq", "--preserve"), ("rocketmq",), ("jsonl",)])
def test_of_transactions_that_are_open_it_is_said(
    words: tuple[str, ...], tmp_path: Path, logstore: CommandLine, caplog: pytest.LogCaptureFixture
) -> None:
    """What stands behind them is left out, and nobody ends them where they come back."""
    data = GOLDEN / "transactions-4.3" / "data"
    assert logstore("convert", data, tmp_path / "new", "--to", *words, *HERE).exit_code == 0
    assert "transactions are open in transactions-0 from offset 146; what stands" in caplog.text
    is_kept = "--preserve" in words
    assert ("on the way back they are open again, and no coordinator" in caplog.text) == is_kept
    caplog.clear()
    whole = GOLDEN / "kafka-4.3" / "data"
    assert logstore("convert", whole, tmp_path / "whole", "--to", *words, *HERE).exit_code == 0
    assert "transactions are open" not in caplog.text


@pytest.mark.parametrize(
    ("written_bytes", "count", "is_one"),
    [(1 << 20, 3, True), (22 << 20, 3, False), (0, 2000, True), (0, 2001, False)],
)
def test_holes_do_not_count_and_many_files_are_much_to_do(
    written_bytes: int, count: int, tmp_path: Path, *, is_one: bool
) -> None:
    """Files of RocketMQ are as long as they may get from the start."""
    for number in range(count):
        with (tmp_path / f"{number}").open("wb") as file:
            file.write(b"x" * written_bytes)
            file.truncate(1 << 30)
    assert is_small(str(tmp_path)) is is_one
    assert not is_small("memory://a/b")


def test_what_is_small_does_without_spark(
    source: Path, tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is done before Spark has started; who names a master has it."""
    asked: list[str] = []

    def note(_: object, master: str) -> dict[str, int]:
        asked.append(master)
        return {"messages": 0, "bytes": 0}

    def allow(*_: object) -> None:
        return None

    monkeypatch.setattr("logstore.tools.commands.convert._converted", note)
    monkeypatch.setattr("logstore.tools.commands.convert.require", allow)
    for words in ((), ("--master", "local[2]")):
        logstore("convert", source, tmp_path / "target", "--to", "rocketmq", *words)
    assert asked == ["none", "local[2]"]
