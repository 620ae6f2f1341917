"""Damages drawn from seeds: what the real ones make of them, ours makes of them, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import missing
from tests.interop.damage import (
    kafka_rounds,
    kafka_text_rounds,
    rocketmq_rounds,
    table_rounds,
)

pytestmark = pytest.mark.interop

#: twenty partitions a round, once as a kill left them and once as a clean stop did
KAFKA_SEEDS = (106,)
#: by which what is damaged is drawn
KAFKA_BASE = 7
ROCKETMQ_COUNT = 40
TABLE_COUNT = 400
TEXT_COUNT = 8


def seeds_wanted(usual: tuple[int, ...]) -> tuple[int, ...]:
    """Return LOGSTORE_DAMAGE_SEEDS, as in 100-120, else the usual ones."""
    first, _, last = os.environ.get("LOGSTORE_DAMAGE_SEEDS", "").partition("-")
    return tuple(range(int(first), int(last or first) + 1)) if first else usual


@pytest.mark.slow
def test_kafka_and_ours_leave_the_same_files(tmp_path: Path) -> None:
    """Byte for byte, but for the excuses of ``damage/kafka_comparison.py``; no batch is lost."""
    count = 0
    try:
        for name, found in kafka_rounds.rounds(tmp_path, KAFKA_BASE, seeds_wanted(KAFKA_SEEDS)):
            assert "\n".join(found.differences) == "", name
            count += found.compared
    except PeerUnavailable as reason:
        missing(str(reason))
    assert count > 20


@pytest.mark.slow
def test_kafka_and_ours_with_damaged_small_files(tmp_path: Path) -> None:
    """Ours starts where Kafka does, and where a partition's file keeps Kafka from starting."""
    try:
        for found in kafka_text_rounds.rounds(tmp_path, KAFKA_BASE, range(TEXT_COUNT)):
            assert "\n".join(found.differences) == "", found.done
    except PeerUnavailable as reason:
        missing(str(reason))


@pytest.mark.parametrize("version", ["5", pytest.param("4", marks=pytest.mark.slow)])
def test_java_and_ours_find_the_same_messages(version: str, tmp_path: Path) -> None:
    """Messages, units and index, but for the excuses of ``damage/rocketmq_comparison.py``."""
    seeds = seeds_wanted(tuple(range(ROCKETMQ_COUNT)))
    try:
        found = rocketmq_rounds.run_rounds(version, seeds, tmp_path)
    except PeerUnavailable as reason:
        missing(str(reason))
    assert "\n".join(f"{seed}: {lines}" for seed, lines in found.items()) == ""


@pytest.mark.slow
def test_java_and_ours_load_the_same_tables(tmp_path: Path) -> None:
    """Topics, groups and offsets, from files and backups in any state."""
    try:
        found = list(table_rounds.run_rounds(range(TABLE_COUNT), tmp_path))
    except PeerUnavailable as reason:
        missing(str(reason))
    assert "\n".join(found) == ""
