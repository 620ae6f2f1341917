"""What a real broker was sent, put again: the files are the broker's, byte for byte."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.golden_rewrite import (
    Rewriter,
    index_bytes,
    log_bytes,
    queue_bytes,
)

#: what the index of these holds was in part removed by hand or made anew by a recovery
REBUILT = ("crash", "crash-pool", "damage")

STORES = [
    pytest.param(case, name, id=f"{case.id}-{name}")
    for case in golden_cases(without=REBUILT)
    for name in case.stores
]


@pytest.mark.parametrize(("case", "name"), STORES)
def test_the_same_messages_give_the_same_files(case: GoldenCase, name: str, tmp_path: Path) -> None:
    """
    Commit log, consume queues and index are the same bytes as the real broker's.

    So are the consume queue extensions, with the bit maps of the consumers' filters.
    """
    source = case.folder / name
    Rewriter(case, source, tmp_path / "store").run().close()
    assert log_bytes(tmp_path / "store") == log_bytes(source)
    assert queue_bytes(tmp_path / "store") == queue_bytes(source)
    assert index_bytes(tmp_path / "store") == index_bytes(source)


@pytest.mark.parametrize(
    "case", golden_cases("properties", "batch-queue"), ids=lambda case: case.id
)
def test_dispatch_after_every_put_gives_the_same_files_as_dispatch_at_the_end(
    case: GoldenCase, tmp_path: Path
) -> None:
    """How often the services run is not to be seen in the files."""
    Rewriter(case, case.store, tmp_path / "store").run(dispatch_each=True).close()
    assert queue_bytes(tmp_path / "store") == queue_bytes(case.store)
    assert index_bytes(tmp_path / "store") == index_bytes(case.store)


def test_the_checkpoint_is_the_brokers_where_it_lived_to_write_it(tmp_path: Path) -> None:
    """
    A broker that flushed its queues before the stop leaves the same 4096 bytes as ours.

    Others left times of their last thorough flush; the index time is always the same.
    """
    same: list[str] = []
    for case in golden_cases(without=REBUILT):
        for name in case.stores:
            source, target = case.folder / name, tmp_path / f"{case.id}-{name}"
            Rewriter(case, source, target).run().close()
            found = (target / "checkpoint").read_bytes()
            expected = (source / "checkpoint").read_bytes()
            assert struct.unpack_from(">q", found, 16) == struct.unpack_from(">q", expected, 16)
            if found == expected:
                same.append(f"{case.id}-{name}")
    assert {"groups-4.9.8-store", "flush-sync-4.9.8-store", "ipv6-4.9.8-store"} <= set(same)
    assert {"ipv6-5.5.0-store", "property-crc-5.5.0-store", "version-2-5.5.0-store"} <= set(same)
