"""Where a commit log ends, and whether more stands behind that."""

from __future__ import annotations

from logstore.errors import CorruptEntryError
from logstore.segments.rocketmq.store import RocketMQStore


def check_end(store: RocketMQStore) -> None:
    """
    Check that no damage hides what a broker has shown: it ends the log in front of it.

    Raises:
        CorruptEntryError: the store was closed cleanly, and its log ends in damage.

    """
    damage = end_damage(store)
    if damage is not None:
        raise damage


def end_damage(store: RocketMQStore) -> CorruptEntryError | None:
    """
    Return the damage that ends the log of a store that was closed cleanly, None if there is none.

    What a crash has left half written is no such damage.
    """
    found = store.recovery.log
    if found is None or found.reason is None or not store.was_clean:
        return None
    file_bytes = store.commit_log.file_size_bytes
    position = found.next_offset % file_bytes
    path = f"{store.directory}/commitlog/{found.next_offset - position:020d}"
    reason = found.reason.removeprefix(f"{path}: position {position}: ")
    return CorruptEntryError(
        path,
        position,
        f"{reason}; what stands behind it would be lost: use what 'logstore salvage' makes",
    )
