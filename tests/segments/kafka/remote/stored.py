"""Storages that tests read from and write to, and what must be equal after a round trip."""

from __future__ import annotations

import shutil
from pathlib import Path

from logstore.host import Host
from logstore.os_host import system_host
from logstore.segments.kafka.record import Record, decode_records
from logstore.segments.kafka.remote import RemoteStorage
from logstore.segments.kafka.store import KafkaStore, StoreOptions

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
TIERED = GOLDEN / "tiered-4.3"
#: what is restored byte for byte
COPIED = (".log", ".index", ".timeindex", ".txnindex")


def host() -> Host:
    """The real world, with chance that repeats."""
    return system_host(seed=1)


def kafka_storage(directory: Path) -> RemoteStorage:
    """Return a copy of what a real broker stored through its LocalTieredStorage."""
    shutil.copytree(TIERED / "remote", directory)
    return RemoteStorage(host().fs, str(directory))


def contents(directory: Path, *suffixes: str) -> dict[str, bytes]:
    """Return the files with these suffixes by name."""
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.suffix in suffixes
    }


def records_of(data: Path, topic: str, partition: int) -> list[Record]:
    """Open a data directory with our store and return all records of a partition."""
    store = KafkaStore(host(), str(data), StoreOptions())
    try:
        batches = store.topics()[topic][partition].batches()
        return [record for batch in batches for record in decode_records(batch.data)]
    finally:
        store.close()
