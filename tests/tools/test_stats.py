"""``logstore stats``: every number held against what the records themselves say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.compression import Codec, decompress
from logstore.segments.kafka.record_batch import HEADER_BYTES
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from tests.segments.kafka.golden_case import GOLDEN, copy_of_data
from tests.segments.kafka.split_directories import split_in_two
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.tools.command_line import CommandLine

DATA = GOLDEN / "kafka-4.3" / "data"
TIME_MS = 1_700_000_000_000
PNG = b"\x89PNG\r\n\x1a\n"


def topics_of(outcome: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the topics of the JSON by name."""
    return {topic["topic"]: topic for topic in outcome["topics"]}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three partitions: 100 records in two batches of different keys, 20 of one key, none."""
    store = KafkaStore(system_host(), str(tmp_path / "data"))
    topic = store.create_topic("orders", 3)
    for start in (0, 50):
        topic.partitions[0].append_records(
            [
                Record(b"k%d" % number, b"v" * 40, TIME_MS + number * 1_000)
                for number in range(start, start + 50)
            ]
        )
    topic.partitions[1].append_records(
        [Record(b"k0", None if number else b"v", TIME_MS) for number in range(20)]
    )
    store.close()
    return tmp_path / "data"


def test_counts_of_a_real_store_are_those_of_its_batches(logstore: CommandLine) -> None:
    """Records, batches, markers, last offset, sizes and codecs of every whole partition."""
    found = topics_of(logstore("stats", DATA, "--json").json)
    store = KafkaStore(system_host(), str(DATA), StoreOptions(is_writable=False))
    checked = 0
    for topic, partitions in store.topics().items():
        for index, partition in partitions.items():
            if topic.startswith("__") or partition.start_offset:
                continue
            batches = list(partition.batches())
            data = [batch for batch in batches if not batch.is_control and batch.record_count]
            told = found[topic]["partitions"][index]
            assert told["records"] == sum(batch.record_count for batch in data)
            assert told["entries"] == len(data)
            assert told["controlBatches"] == len(batches) - len(
                [batch for batch in batches if not batch.is_control]
            )
            if data:
                assert told["lastOffset"] == data[-1].last_offset
                assert told["entryBytes"]["max"] == max(batch.size_bytes for batch in data)
                codecs = {
                    Codec(batch.codec).name.lower() for batch in batches if batch.record_count
                }
                assert set(told["codecs"]) == codecs
            checked += 1
    store.close()
    assert checked > 20


def test_compressed_batches_are_measured_without_their_codec(logstore: CommandLine) -> None:
    """Uncompressed bytes are those that the records would take without a codec."""
    found = topics_of(logstore("stats", DATA, "--json", "--topics", "codec-zstd").json)
    store = KafkaStore(system_host(), str(DATA), StoreOptions(is_writable=False))
    plain = sum(
        HEADER_BYTES + len(decompress(Codec(batch.codec), batch.data[HEADER_BYTES:]))
        for batch in store.partition("codec-zstd", 0).batches()
    )
    store.close()

    assert found["codec-zstd"]["uncompressedBytes"] == plain
    assert found["codec-zstd"]["compressionRatio"] > 1


@pytest.mark.parametrize(
    ("name", "version"), [("plain", "4.9.8"), ("batch-queue", "5.5.0"), ("properties", "5.5.0")]
)
def test_messages_of_a_real_store_are_counted_by_queue(
    name: str, version: str, logstore: CommandLine
) -> None:
    """As many messages of each queue as a real consumer got, inner batches unwrapped."""
    case = GoldenCase(name, version)
    found = topics_of(logstore("stats", case.store, "--json").json)
    wanted: Counter[tuple[str, int]] = Counter(
        (message["topic"], message["queueId"]) for message in case.expected
    )

    told = {
        (topic, partition["partition"]): partition["records"]
        for topic, content in found.items()
        for partition in content["partitions"]
    }

    assert {place: told[place] for place in wanted} == dict(wanted)
    # What every broker makes at its start is no topic of anybody's until it is used.
    assert not {"BenchmarkTest", "TBW102", "SELF_TEST_TOPIC", "broker-a"} & found.keys()
    assert not {"DefaultCluster", "DefaultCluster_REPLY_TOPIC"} & found.keys()


def test_keys_rate_and_spread(store: Path, logstore: CommandLine) -> None:
    """Different keys over all partitions, buckets of time, and the partition that has too much."""
    topic = topics_of(logstore("stats", store, "--json").json)["orders"]

    assert (topic["records"], topic["recordsWithKey"], topic["nullValues"]) == (120, 120, 19)
    assert abs(topic["distinctKeys"] - 100) <= 3
    assert [one["distinctKeys"] for one in topic["partitions"]][1:] == [1, 0]
    assert (topic["firstTimestamp"], topic["lastTimestamp"]) == (TIME_MS, TIME_MS + 99_000)
    assert topic["rate"]["bucketMs"] == 1_000
    assert [bucket["records"] for bucket in topic["rate"]["buckets"]] == [21, *[1] * 99]
    assert sum(bucket["bytes"] for bucket in topic["rate"]["buckets"]) == pytest.approx(
        topic["bytes"], abs=100
    )
    assert topic["hotPartitions"] == [0]
    assert topic["skew"] > 2


def test_a_window_of_time_counts_its_records_alone(store: Path, logstore: CommandLine) -> None:
    """--from is in, --until is out; a batch counts with the share of its records that are in."""
    whole = topics_of(logstore("stats", store, "--json").json)["orders"]["partitions"][0]
    window = ("--from", TIME_MS + 50_000, "--until", TIME_MS + 75_000)
    part = topics_of(logstore("stats", store, "--json", *window).json)["orders"]["partitions"][0]

    assert (part["records"], part["firstOffset"], part["lastOffset"]) == (25, 50, 74)
    assert part["entries"] == 1
    assert part["bytes"] == pytest.approx(whole["bytes"] / 4, rel=0.02)


def test_damage_is_counted_and_passed_over(tmp_path: Path, logstore: CommandLine) -> None:
    """A batch with a wrong CRC is one damage; the batches behind it are counted."""
    data = copy_of_data("kafka-4.3", tmp_path)
    before = topics_of(logstore("stats", data, "--json", "--topics", "codec-gzip").json)
    log = data / "codec-gzip-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    after = topics_of(logstore("stats", data, "--json", "--topics", "codec-gzip").json)
    first_count = int.from_bytes(content[57:61])

    assert after["codec-gzip"]["damaged"] == 1
    assert after["codec-gzip"]["records"] == before["codec-gzip"]["records"] - first_count


def test_damage_at_the_end_of_a_log_is_counted(tmp_path: Path, logstore: CommandLine) -> None:
    """Where a broker would end the log of a store that was closed cleanly, of either layout."""
    store = GoldenCase("plain", "5.5.0").copy_store(tmp_path / "store")
    last = max((store / "commitlog").iterdir())
    content = bytearray(last.read_bytes())
    content[90] ^= 1
    last.write_bytes(content)
    assert logstore("stats", store, "--json").json["damaged"] == 1

    data = copy_of_data("kafka-4.3", tmp_path)
    log = max((data / "shapes-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-5])
    found = topics_of(logstore("stats", data, "--json", "--topics", "shapes").json)
    assert found["shapes"]["damaged"] == 1


def test_people_get_a_few_lines_a_topic(store: Path, logstore: CommandLine) -> None:
    """Counts with commas, a sparkline, the spread, and with --partitions a table."""
    lines = logstore("stats", store, "--partitions").lines

    assert lines[0] == "orders: 3 partitions"
    assert lines[1] == "  records    120, 19 with a null value"
    assert any(line.startswith("  rate       █") for line in lines)
    assert any("hot: 0" in line for line in lines)
    assert [line.split()[:2] for line in lines[-3:]] == [["0", "100"], ["1", "20"], ["2", "0"]]


def test_a_picture_is_drawn(store: Path, tmp_path: Path, logstore: CommandLine) -> None:
    """--plot leaves a PNG file."""
    pytest.importorskip("matplotlib", reason="matplotlib is missing: extra `stats`")
    outcome = logstore("stats", store, "--plot", tmp_path / "rate.png")

    assert outcome.exit_code == 0, outcome.err
    assert (tmp_path / "rate.png").read_bytes()[:8] == PNG


def test_what_is_not_there_is_said(store: Path, tmp_path: Path, logstore: CommandLine) -> None:
    """A topic that is not in the store, and a directory that is none, end with 1 and a line."""
    topic = logstore("stats", store, "--topics", "bills")
    place = logstore("stats", tmp_path)

    assert (topic.exit_code, place.exit_code) == (1, 1)
    assert "option topics: 'bills' is not in the store" in topic.err
    assert str(tmp_path) in place.err


def test_keys_are_told_of_records_that_have_some(store: Path, logstore: CommandLine) -> None:
    """Of records without keys there are none, and of no records nothing is said."""
    (case,) = golden_cases("multi-dispatch", version="5.5.0")
    lines = logstore("stats", case.store, "--topics", "shop_user_0,%RETRY%golden_reader").lines
    assert lines[:2] == ["%RETRY%golden_reader: 1 partition", "  records    0"]
    assert lines[2].startswith("  bytes")
    assert "  keys       none" in lines[3:]


def test_light_queues_are_refused(logstore: CommandLine, tmp_path: Path) -> None:
    """They lead to messages of other topics, so that a scan of the log would find none."""
    (case,) = golden_cases("multi-dispatch", version="5.5.0")
    target = ("--to", "kafka", "--master", "none")
    for command in (("stats", case.store), ("convert", case.store, tmp_path / "new", *target)):
        refused = logstore(*command, "--topics", "shop_user_0,%LMQ%abc")
        assert refused.exit_code == 1
        assert "option topics: '%LMQ%abc' light queues lead to messages" in refused.err


@pytest.mark.parametrize("command", ["stats", "convert"])
def test_one_partition_is_named_by_its_topic(
    command: str, store: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """A partition's own directory lacks what is said beside it; what to name instead is said."""
    partition = next(path for path in sorted(store.iterdir()) if path.is_dir())
    topic = partition.name.rpartition("-")[0]
    rest = () if command == "stats" else (tmp_path / "new", "--to", "jsonl", "--master", "none")
    refused = logstore(command, partition, *rest)
    assert refused.exit_code == 1
    assert f"{partition}: is one partition's directory; name the one that it is in" in refused.err
    assert f"topics={topic}" in refused.err


@pytest.mark.parametrize("command", ["stats", "rocketmq", "jsonl"])
def test_of_a_part_of_a_cluster_it_is_said(
    command: str, tmp_path: Path, logstore: CommandLine, caplog: pytest.LogCaptureFixture
) -> None:
    """Who forgets a directory hears which topics lack partitions; with all of them nothing."""
    first, second = split_in_two(DATA, tmp_path)
    words = ("stats",) if command == "stats" else ("convert", "--to", command, "--master", "none")
    for number, name in enumerate((f"{first}", f"{first},{second}")):
        caplog.clear()
        rest = () if command == "stats" else (tmp_path / f"new-{number}",)
        assert logstore(*words, name, *rest).exit_code == 0
        is_told = f"{name}: lacks partitions that the cluster has: " in caplog.text
        assert is_told == (name == f"{first}")
    caplog.clear()
    logstore("stats", first, "--topics", "compacted")
    assert ("1 of compacted;" in caplog.text) == (not (first / "compacted-0").exists())
