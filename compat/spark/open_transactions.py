"""Transactions that are open in what is converted: nobody ends them in the target."""

from __future__ import annotations

import logging
from collections.abc import Callable

from logstore.segments.kafka.store import KafkaStore

_log = logging.getLogger(__name__)
_PARTITIONS_SHOWN = 5


def tell_open(store: KafkaStore, wants: Callable[[str, int], bool], *, is_kept: bool) -> None:
    """
    Say which partitions are converted only up to a transaction that is open.

    What `is_kept` comes back on the way back, where no coordinator knows of the transaction.
    """
    found = [
        (f"{topic}-{index}", partition.last_stable_offset)
        for topic, partitions in sorted(store.topics().items())
        for index, partition in sorted(partitions.items())
        if wants(topic, index) and partition.producers.open_transactions()
    ]
    if not found:
        return
    shown = [f"{name} from offset {offset}" for name, offset in found[:_PARTITIONS_SHOWN]]
    rest = len(found) - len(shown)
    _log.warning(
        "%s: transactions are open in %s%s; what stands there is left out: let their producers "
        "end them first, or abort them (kafka-transactions.sh abort)%s",
        store.directory,
        ", ".join(shown),
        f" and {rest} more partitions" if rest else "",
        "; on the way back they are open again, and no coordinator will end them" * is_kept,
    )
