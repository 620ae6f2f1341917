"""
A session is drawn from a seed and put to a real broker and to ours.

To run many of them: ``./dev run python -m tests.interop.drawn.session --first 0 --count 100``.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.drawn import records, topics
from tests.interop.drawn.schemas import apis
from tests.interop.drawn.twin import Twin
from tests.interop.drawn.world import World
from tests.interop.eventually import eventually

Draw = Callable[[World], None]
#: what may be done, and how often beside the others
TOPICS: tuple[tuple[int, Draw], ...] = (
    (6, topics.create_topics),
    (6, topics.metadata),
    (2, topics.create_partitions),
    (1, topics.delete_topics),
    (2, topics.describe_topic_partitions),
)
RECORDS: tuple[tuple[int, Draw], ...] = (
    (14, records.produce),
    (1, records.init_producer_id),
    (6, records.fetch),
    (4, records.fetch_incrementally),
    (4, records.list_offsets),
    (2, records.delete_records),
    (1, records.offset_for_leader_epoch),
    (2, records.describe_producers),
)
AREAS: dict[str, tuple[tuple[int, Draw], ...]] = {
    "topics": TOPICS,
    "records": RECORDS,
}


def versions_of_both(twin: Twin) -> dict[str, range]:
    """Return the versions of each API that both serve."""
    answer = twin.exchange(
        "ApiVersions", 3, {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"}
    )
    ranges: list[dict[int, tuple[int, int]]] = [
        {one["ApiKey"]: (one["MinVersion"], one["MaxVersion"]) for one in side["ApiKeys"]}
        for side in (answer.ours, answer.real)
    ]
    found = {}
    for name, api in apis().items():
        if all(api.key in side for side in ranges):
            first = max(side[api.key][0] for side in ranges)
            last = min(side[api.key][1] for side in ranges)
            found[name] = range(3 if name == "Produce" else first, last + 1)
    return found


def has_producer_ids(twin: Twin) -> bool:
    """Tell whether both hand out identities."""
    body = {"TransactionalId": None, "TransactionTimeoutMs": 60_000}
    answer = twin.exchange("InitProducerId", 4, body)
    return bool(answer.ours["ErrorCode"] == answer.real["ErrorCode"] == 0)


def run(ours: str, real: str, seed: int, areas: Sequence[str] = (), steps: int = 60) -> Twin:
    """Lead both through the session of a seed."""
    chance = random.Random(seed)
    twin = Twin(ours, real)
    world = World(twin, chance, f"s{seed}", versions_of_both(twin))
    chosen = areas or sorted(AREAS)
    # A new broker has no producer ids yet when it is asked for the first.
    eventually(lambda: has_producer_ids(twin), what="producer ids")
    drawn = [one for area in chosen for one in AREAS[area]]
    weights = [weight for weight, _ in drawn]
    try:
        topics.create_topics(world)
        for _ in range(steps):
            ((_, draw),) = chance.choices(drawn, weights)
            draw(world)
    finally:
        twin.close()
    return twin


def main() -> int:
    """Run the sessions of some seeds, tell what is different, return in how many."""
    from tests.interop.conftest import SETTINGS
    from tests.interop.our_broker import OurBroker

    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--areas", default="", help="some of: " + ",".join(sorted(AREAS)))
    options = parser.parse_args()
    areas = [one for one in options.areas.split(",") if one]
    bad = 0
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        real = stack.enter_context(KafkaPeer("4", directory / "real", settings=SETTINGS))
        ours = stack.enter_context(OurBroker(directory / "ours", SETTINGS))
        for seed in range(options.first, options.first + options.count):
            twin = run(ours.bootstrap, real.bootstrap, seed, areas, options.steps)
            told = [f"seed {seed}: {len(twin.steps)} steps", *map(str, twin.differences)]
            sys.stdout.write("\n  ".join(told) + "\n")
            sys.stdout.flush()
            bad += bool(twin.differences)
    return bad


if __name__ == "__main__":
    sys.exit(main())
