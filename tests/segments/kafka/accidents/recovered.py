"""What follows a power loss: a recovery, perhaps a second loss within it, and the checks."""

from __future__ import annotations

import random
from contextlib import suppress

from logstore.host import read_file
from logstore.segments.kafka.store import KafkaStore
from logstore.testing import PowerLoss, PowerLost, SimulatedHost
from tests.segments.kafka.accidents.witnessed_store import DATA, StoreTestimony, WitnessedStore
from tests.segments.kafka.accidents.workload import SMALL

#: a recovery and the little work after it take fewer operations than that, as a rule
SECOND_LIFE_OPERATIONS = 90


def contents(host: SimulatedHost, directory: str = DATA) -> dict[str, bytes]:
    """Return the files below a directory with all that is in them."""
    found: dict[str, bytes] = {}
    for entry in host.fs.list_directory(directory) if host.fs.exists(directory) else []:
        path = f"{directory}/{entry.name}"
        if entry.is_directory:
            found |= contents(host, path)
        else:
            found[path] = read_file(host.fs, path)
    return found


def recover_and_check(host: SimulatedHost, testimony: StoreTestimony) -> KafkaStore:
    """Open the store; it must be what the testimony says."""
    store = KafkaStore(host, DATA)
    testimony.check(store)
    return store


def check_idempotence(host: SimulatedHost, testimony: StoreTestimony) -> None:
    """Recover once, and once more: not one byte changes that matters (:func:`may_change`)."""
    if recover_and_check(host, testimony).was_clean:  # then nothing was recovered yet
        host.fs.process_death()
        recover_and_check(host, testimony)
    host.fs.process_death()
    before = contents(host)
    recover_and_check(host, testimony)
    host.fs.process_death()
    after = contents(host)
    changed = [
        path
        for path in before | after
        if before.get(path) != after.get(path) and not may_change(path, before, testimony)
    ]
    assert not changed, f"the second recovery changes {changed}"


def may_change(path: str, before: dict[str, bytes], testimony: StoreTestimony) -> bool:
    """
    Tell whether a second recovery may change a file.

    What is on its way out may be gone. A time index that had been lost, and that the first one
    supplied empty as Kafka does, may be filled. And where nothing was flushed yet producers of
    records that are lost may be forgotten.
    """
    directory, _, name = path.rpartition("/")
    if name.endswith(".deleted") or directory.endswith("-delete"):
        return True
    if name.endswith(".timeindex") and before.get(path) == b"":
        return True
    topic, _, index = directory.rpartition("/")[2].rpartition("-")
    known = testimony.topics.get(topic)
    if not name.endswith(".snapshot") or known is None or int(index) >= len(known.partitions):
        return False
    return known.partitions[int(index)].promised_end == 0


def lose_twice(host: SimulatedHost, testimony: StoreTestimony, seed: int) -> None:
    """Lose power, lose it again during the recovery or soon after it, and check what is left."""
    dice = random.Random(seed)
    first = PowerLoss.random(dice.getrandbits(30))
    host.power_loss(first)
    count = dice.randrange(SECOND_LIFE_OPERATIONS)
    host.fs.cut_power_after(count)
    testimony = testimony.copy()
    with suppress(PowerLost):
        go_on(host, testimony, dice)
    second = PowerLoss.random(dice.getrandbits(30))
    host.power_loss(second)
    recover_and_check(host, testimony)


def go_on(host: SimulatedHost, testimony: StoreTestimony, dice: random.Random) -> None:
    """Recover, and do a little of everything."""
    witnessed = WitnessedStore(host, testimony)
    testimony.check(witnessed.store)
    testimony.adopt(witnessed.store)
    if not testimony.topics:
        witnessed.create("late", 1, SMALL)
    for number in range(dice.randrange(5)):
        name = dice.choice(sorted(testimony.topics))
        index = dice.choice(sorted(witnessed.store.topics_by_name[name].partitions))
        values = [(b"late", b"%d.%d" % (number, n)) for n in range(dice.randrange(1, 4))]
        kind = dice.randrange(6)
        if kind == 0:
            witnessed.flush(name, index)
        elif kind == 1:
            witnessed.append(name, index, values, producer_id=9, is_transactional=True)
        elif kind == 2:
            is_commit = dice.random() < 0.5
            witnessed.end_transaction(name, index, dice.choice((1, 2, 9)), is_commit=is_commit)
        elif kind == 3:
            witnessed.checkpoint()
        else:
            witnessed.append(name, index, values)
    if dice.random() < 0.3:
        witnessed.stop()
