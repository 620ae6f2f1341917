"""`logstore bench layout` on very little data: the figures come from work that was done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logstore.checksum import crc32c
from logstore.os_host import system_host
from logstore.segments.kafka.record_batch import HEADER_BYTES, iterate_batches
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.layout_cells import CELLS, LayoutCell, Recover, Workplace
from logstore.tools.bench.layout_data import (
    KIB_RECORDS,
    LONELY_RECORDS,
    SMALL_RECORDS,
    TOPIC,
    BatchShape,
    make_many,
    make_store,
    write_log,
)
from logstore.tools.bench.layout_run import ALL_CELLS, SUBJECT, chosen, measure
from logstore.tools.bench.rocketmq_layout_cells import ROCKETMQ_CELLS
from logstore.tools.commands import bench_layout
from tests.tools.command_line import CommandLine

TINY = 1 / 1024


@pytest.mark.parametrize("shape", [SMALL_RECORDS, KIB_RECORDS, LONELY_RECORDS])
def test_a_log_is_filled_with_sound_batches(shape: BatchShape, tmp_path: Path) -> None:
    """Offsets go on from batch to batch, CRCs are right, and records are about that large."""
    path = tmp_path / "0.log"
    written = write_log(str(path), shape, 100_000)
    assert path.stat().st_size == written <= 100_000
    next_offset = 0
    for batch in iterate_batches(memoryview(path.read_bytes())):
        assert batch.base_offset == next_offset
        assert crc32c(batch.data[21:]) == batch.crc
        next_offset = batch.next_offset
    record_bytes = (len(shape.batch()) - HEADER_BYTES) / shape.record_count
    assert record_bytes == pytest.approx(shape.record_bytes, rel=0.05)


def test_a_made_store_has_to_be_recovered(tmp_path: Path) -> None:
    """Nothing of a clean stop is left: every batch is checked, in every partition."""
    path = str(tmp_path / "store")
    written = make_store(path, SMALL_RECORDS, 200_000, 3)
    store = KafkaStore(system_host(), path, StoreOptions())
    partitions = store.topics()[TOPIC]
    assert not store.was_clean
    assert len(partitions) == 3
    for partition in partitions.values():
        assert partition.recovery is not None
        assert partition.recovery.is_clean
    assert sum(partition.log.size_bytes for partition in partitions.values()) == written
    store.close()


def test_many_partitions_are_closed_cleanly(tmp_path: Path) -> None:
    """Each has records, and a start trusts them."""
    make_many(str(tmp_path / "many"), 5)
    store = KafkaStore(system_host(), str(tmp_path / "many"))
    assert store.was_clean
    assert [p.end_offset for p in store.partitions()] == [SMALL_RECORDS.record_count] * 5
    store.close()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_every_cell_yields_its_figures(cell: LayoutCell, tmp_path: Path) -> None:
    """Each figure that a cell announces is there and positive; nothing else is left behind."""
    said: list[str] = []
    outcome = measure([cell], Workplace(str(tmp_path), TINY), rounds=2, say=said.append)
    assert said == [f"round {number}: {cell.scenario}, {cell.name}" for number in (1, 2)]
    assert [row.metric for row in outcome.rows] == list(cell.metrics)
    for row in outcome.rows:
        samples = row.samples[SUBJECT]
        assert sorted(samples) == [1, 2]
        assert min(samples.values()) > 0
        assert (row.verdict is None) == (row.metric.bar is None)


def test_a_recovery_that_lost_something_is_no_figure(tmp_path: Path) -> None:
    """A store that does not come back whole fails the run; it is not counted as fast."""
    workplace = Workplace(str(tmp_path), TINY)
    recover = Recover("lossy", SMALL_RECORDS)
    path, _ = workplace.store("lossy", SMALL_RECORDS, 1024)
    log = Path(path) / f"{TOPIC}-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[-100] ^= 1
    log.write_bytes(content)
    with pytest.raises(BenchError, match="were recovered"):
        recover(workplace)


def test_scenarios_are_chosen_by_name() -> None:
    """Unknown ones are refused with those that there are; none chooses all."""
    assert chosen([]) == ALL_CELLS
    assert chosen([])[: len(CELLS)] == CELLS
    assert {cell.scenario for cell in chosen(["decode", "open"])} == {"decode", "open"}
    with pytest.raises(BenchError, match="there are decode, lookup, verify"):
        chosen(["speed"])


def test_the_command_prints_and_writes_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logstore: CommandLine
) -> None:
    """One row a figure with its bar; JSON has every sample; the data are gone afterwards."""
    monkeypatch.setattr(bench_layout, "QUICK_SCALE", TINY)
    work = tmp_path / "work"
    work.mkdir()
    file = tmp_path / "figures.json"
    done = logstore("bench", "layout", "--quick", "-s", "lookup", "--json", file, "--dir", work)
    assert done.exit_code == 0, done.err
    assert "< 30 us" in done.out
    assert "bars are met" in done.out
    content = json.loads(file.read_text())
    assert [row["figure"] for row in content["rows"]] == ["us", "cpu_us"]
    assert list(work.iterdir()) == []


def test_rocketmqs_cells_find_what_they_put(tmp_path: Path) -> None:
    """At a tiny scale each of them runs, checks its own result and cleans up."""
    for cell in ROCKETMQ_CELLS:
        if cell.name.startswith("pull"):
            continue  # has no smaller scale
        figures = cell.run(Workplace(str(tmp_path), 0.002))
        assert set(figures) == {metric.name for metric in cell.metrics}
        assert all(value > 0 for value in figures.values())
    assert list(tmp_path.iterdir()) == []
