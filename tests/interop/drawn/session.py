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
from pathlib import Path

from tests.interop.drawn import (
    acls,
    anything,
    bursts,
    cluster,
    configs,
    cursors,
    decrees,
    delegations,
    expressions,
    fetches,
    groups,
    inquiries,
    lists,
    logins,
    migrations,
    mixed_groups,
    offsets,
    patterns,
    records,
    share_coordinator,
    shares,
    stores,
    streams,
    topics,
    transactions,
    unserved,
)
from tests.interop.drawn.comparison import uuid_text
from tests.interop.drawn.schemas import apis
from tests.interop.drawn.stage import SECURED, Listeners, both_brokers
from tests.interop.drawn.twin import Twin
from tests.interop.drawn.world import World
from tests.interop.eventually import eventually
from tests.interop.stored_records import settled_differences

Draw = Callable[[World], None]
NO_SUCH_TRANSACTION = 105
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
GROUPS: tuple[tuple[int, Draw], ...] = (
    (8, groups.join),
    (6, groups.sync),
    (3, groups.heartbeat),
    (2, groups.leave),
    (5, groups.offset_commit),
    (5, groups.offset_fetch),
    (2, groups.offset_delete),
    (3, groups.describe_groups),
    (3, groups.describe_modern_groups),
    (2, groups.delete_groups),
    (1, groups.find_coordinator),
    (8, groups.consumer_heartbeat),
    (5, groups.share_heartbeat),
    (2, groups.list_groups),
)
TRANSACTIONS: tuple[tuple[int, Draw], ...] = (
    (5, transactions.init_producer_id),
    (6, transactions.add_partitions),
    (3, transactions.add_offsets),
    (4, transactions.txn_offset_commit),
    (6, transactions.end_txn),
    (8, transactions.produce),
    (2, transactions.describe_transactions),
    (2, transactions.list_transactions),
    (2, records.describe_producers),
    (2, records.fetch),
    (1, records.list_offsets),
    (1, groups.offset_fetch),
    (2, transactions.write_markers),
)
CONFIGS: tuple[tuple[int, Draw], ...] = (
    (1, topics.create_topics),
    (4, configs.alter),
    (7, configs.alter_incrementally),
    (7, configs.describe),
    (1, configs.list_resources),
    (5, configs.alter_quotas),
    (5, configs.describe_quotas),
    (4, configs.alter_scram),
    (4, configs.describe_scram),
)
CLUSTER: tuple[tuple[int, Draw], ...] = (
    (1, topics.create_topics),
    (1, topics.create_partitions),
    (2, cluster.describe_cluster),
    (2, cluster.describe_log_dirs),
    (2, cluster.alter_log_dirs),
    (2, cluster.describe_quorum),
    (2, cluster.elect_leaders),
    (3, cluster.reassign),
    (2, cluster.list_reassignments),
    (3, cluster.update_features),
    (1, cluster.api_versions),
    (1, records.delete_records),
    (1, records.offset_for_leader_epoch),
    (1, unserved.among_themselves),
    (1, unserved.unregister_broker),
    (1, unserved.add_voter),
    (1, unserved.remove_voter),
    (2, unserved.delegation_tokens),
)
SHARES: tuple[tuple[int, Draw], ...] = (
    (1, topics.create_topics),
    (10, records.produce),
    (1, records.delete_records),
    (6, groups.share_heartbeat),
    (12, shares.fetch),
    (8, shares.acknowledge),
    (1, shares.change_settings),
    (2, shares.describe),
    (4, shares.describe_offsets),
    (3, shares.alter_offsets),
    (2, shares.delete_offsets),
    (1, shares.delete_groups),
    (2, share_coordinator.initialize),
    (2, share_coordinator.read),
    (4, share_coordinator.write),
    (2, share_coordinator.summarize),
    (1, share_coordinator.forget),
)
STREAMS: tuple[tuple[int, Draw], ...] = (
    (1, topics.create_topics),
    (1, topics.create_partitions),
    (1, topics.delete_topics),
    (14, streams.heartbeat),
    (3, streams.describe),
    (1, streams.configure),
    (1, streams.delete_groups),
    (2, streams.commit),
    (1, groups.offset_fetch),
    (1, groups.list_groups),
)
ACLS: tuple[tuple[int, Draw], ...] = (
    (4, acls.create),
    (4, acls.describe),
    (2, acls.delete),
)
#: with enough of the others that there is something to ask about
ANYTHING: tuple[tuple[int, Draw], ...] = (
    (20, anything.ask),
    (2, topics.create_topics),
    (3, records.produce),
    (1, groups.join),
    (1, groups.sync),
    (2, groups.consumer_heartbeat),
    (1, groups.offset_commit),
    (1, transactions.init_producer_id),
    (1, transactions.add_partitions),
    (1, transactions.end_txn),
)
#: a real broker looks them up beside, in its own time: what it keeps of a group depends on that
PATTERNS: tuple[tuple[int, Draw], ...] = (
    (3, patterns.subscribe),
    (1, topics.create_topics),
)
STORES: tuple[tuple[int, Draw], ...] = (
    (3, stores.create),
    (14, stores.produce),
    (1, records.init_producer_id),
    (4, stores.read),
    (4, stores.look_for),
    (1, records.describe_producers),
    (1, records.delete_records),
)
FETCHES: tuple[tuple[int, Draw], ...] = (
    (2, topics.create_topics),
    (1, topics.create_partitions),
    (1, topics.delete_topics),
    (8, fetches.produce),
    (2, fetches.begin),
    (12, fetches.go_on),
    (1, records.delete_records),
    (1, transactions.init_producer_id),
    (1, transactions.add_partitions),
    (2, transactions.produce),
    (2, transactions.end_txn),
)
LISTS: tuple[tuple[int, Draw], ...] = (
    (1, topics.create_topics),
    (10, lists.change),
    (5, lists.describe),
    (1, configs.alter),
    (1, configs.list_resources),
)
BURSTS: tuple[tuple[int, Draw], ...] = (
    (1, topics.create_topics),
    (3, stores.create),
    (16, bursts.burst),
    (1, records.init_producer_id),
    (2, stores.read),
    (1, records.describe_producers),
    (1, records.delete_records),
)
#: what there is to ask about: topics that come and go, open transactions, groups
FURNITURE: tuple[tuple[int, Draw], ...] = (
    (3, topics.create_topics),
    (1, topics.create_partitions),
    (1, topics.delete_topics),
    (4, fetches.produce),
    (1, records.init_producer_id),
    (3, transactions.init_producer_id),
    (3, transactions.add_partitions),
    (4, transactions.produce),
    (1, transactions.add_offsets),
    (2, transactions.txn_offset_commit),
    (2, transactions.end_txn),
    (2, groups.join),
    (2, groups.sync),
    (1, groups.leave),
    (2, groups.consumer_heartbeat),
    (1, groups.share_heartbeat),
)
INQUIRIES: tuple[tuple[int, Draw], ...] = (
    *FURNITURE,
    (2, offsets.commit),
    (6, inquiries.topic_partitions),
    (5, inquiries.transactions),
    (3, inquiries.transactions_by_name),
    (3, inquiries.producers),
    (2, inquiries.log_dirs),
    (1, inquiries.reassignments),
    (4, inquiries.offsets),
    (3, inquiries.epochs),
    (4, inquiries.groups_by_filter),
    (1, inquiries.cluster),
    (4, inquiries.settings_of_anything),
    (1, inquiries.resources),
    (4, inquiries.quotas),
    (2, inquiries.passwords),
    (1, inquiries.quorum),
    (3, inquiries.coordinators),
    (5, offsets.fetch),
    (5, offsets.describe),
)
DECREES: tuple[tuple[int, Draw], ...] = (
    *FURNITURE,
    (2, decrees.log_dirs),
    (3, decrees.elections),
    (4, decrees.reassign),
    (6, decrees.quotas),
    (3, inquiries.quotas),
    (5, decrees.passwords),
    (2, inquiries.passwords),
    (5, decrees.delete_records),
    (2, inquiries.offsets),
    (3, decrees.features),
    (4, decrees.markers),
    (1, acls.create),
    (1, acls.describe),
    (1, acls.delete),
    (2, inquiries.producers),
    (5, offsets.commit),
    (4, offsets.fetch),
    (4, offsets.forget),
    (2, offsets.delete_groups),
    (2, offsets.describe),
)
EXPRESSIONS: tuple[tuple[int, Draw], ...] = (
    (1, expressions.name),
    (8, expressions.transactions),
)
MIGRATIONS: tuple[tuple[int, Draw], ...] = (
    (10, migrations.join),
    (6, migrations.sync),
    (4, migrations.heartbeat),
    (4, migrations.leave),
    (12, migrations.consumer_heartbeat),
    (7, migrations.go_round),
    (3, mixed_groups.commit),
    (3, mixed_groups.txn_commit),
    (2, mixed_groups.fetch_offsets),
    (1, mixed_groups.forget_offsets),
    (4, mixed_groups.describe),
    (1, mixed_groups.list_groups),
    (1, mixed_groups.delete),
    (1, mixed_groups.intrude),
    (1, transactions.init_producer_id),
    (1, transactions.end_txn),
)
CURSORS: tuple[tuple[int, Draw], ...] = (
    (2, topics.create_topics),
    (2, topics.create_partitions),
    (1, topics.delete_topics),
    (2, cursors.grow),
    (8, cursors.page),
    (4, cursors.pages),
    (2, inquiries.topic_partitions),
    (2, inquiries.cluster),
    (3, decrees.quotas),
    (4, inquiries.quotas),
)
#: of who comes by a listener with logins
LOGINS: tuple[tuple[int, Draw], ...] = (
    (12, logins.log_in),
    (2, logins.name_any_mechanism),
    (4, logins.ask_too_early),
    (2, logins.send_nonsense),
    (3, logins.all_at_once),
)
DELEGATIONS: tuple[tuple[int, Draw], ...] = (
    (6, delegations.create),
    (5, delegations.renew),
    (5, delegations.expire),
    (4, delegations.describe),
    (4, delegations.use),
    (3, delegations.passwords),
    (1, inquiries.passwords),
)
AREAS: dict[str, tuple[tuple[int, Draw], ...]] = {
    "topics": TOPICS,
    "records": RECORDS,
    "groups": GROUPS,
    "transactions": TRANSACTIONS,
    "configs": CONFIGS,
    "cluster": CLUSTER,
    "shares": SHARES,
    "streams": STREAMS,
    "acls": ACLS,
    "anything": ANYTHING,
    "patterns": PATTERNS,
    "stores": STORES,
    "fetches": FETCHES,
    "lists": LISTS,
    "bursts": BURSTS,
    "inquiries": INQUIRIES,
    "decrees": DECREES,
    "expressions": EXPRESSIONS,
    "migrations": MIGRATIONS,
    "cursors": CURSORS,
    "logins": LOGINS,
    "delegations": DELEGATIONS,
}
#: which only who names them gets
_BY_NAME = {
    "acls", "anything", "patterns", "stores", "fetches", "lists", "bursts", "inquiries", "decrees",
    "expressions", "migrations", "cursors", *SECURED,
}  # fmt: skip


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


def has_coordinators(twin: Twin) -> bool:
    """Tell whether both have loaded what they know of groups and of transactions."""
    for kind, key in enumerate(("a", "a", f"a:{uuid_text(bytes(15) + b'a')}:0")):
        body = {"KeyType": kind, "CoordinatorKeys": [key]}
        found = twin.exchange("FindCoordinator", 6, body)
        if any(side["Coordinators"][0]["ErrorCode"] for side in found):
            return False
    names = [f"g{number}" for number in range(8)]
    groups = twin.exchange("DescribeGroups", 0, {"Groups": names})
    # So many names that each partition of the transactions' topic has some.
    names = [f"x{number}" for number in range(400)]
    transactions = twin.exchange("DescribeTransactions", 0, {"TransactionalIds": names})
    codes = [one["ErrorCode"] for side in groups for one in side["Groups"]]
    codes += [
        one["ErrorCode"] - NO_SUCH_TRANSACTION
        for side in transactions
        for one in side["TransactionStates"]
    ]
    return not any(codes)


def run(
    ours: str,
    real: str,
    seed: int,
    areas: Sequence[str] = (),
    steps: int = 60,
    prefix: str = "",
    listeners: Listeners | None = None,
) -> Twin:
    """Lead both through the session of a seed."""
    chance = random.Random(seed)
    twin = Twin(ours, real, listeners)
    world = World(twin, chance, f"{prefix}s{seed}", versions_of_both(twin))
    chosen = areas or sorted(set(AREAS) - _BY_NAME)
    # A new broker has no producer ids yet when it is asked for the first.
    eventually(lambda: has_producer_ids(twin), what="producer ids")
    eventually(lambda: has_coordinators(twin), what="coordinators")
    twin.ask("DescribeCluster", 0, {})  # what the cluster is called stands in some refusals
    drawn = [one for area in chosen for one in AREAS[area]]
    weights = [weight for weight, _ in drawn]
    try:
        topics.create_topics(world)
        for _ in range(steps):
            ((_, draw),) = chance.choices(drawn, weights)
            draw(world)
            twin.settle()
        shares.close_sessions(world)
    finally:
        twin.close()
    return twin


def main() -> int:
    """Run the sessions of some seeds, tell what is different, return in how many."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--areas", default="", help="some of: " + ",".join(sorted(AREAS)))
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE, of both brokers")
    parser.add_argument("--told", action="store_true", help="all questions of each session")
    options = parser.parse_args()
    areas = [one for one in options.areas.split(",") if one]
    settings: dict[str, object] = dict(one.split("=", 1) for one in options.set)
    bad = 0
    with (
        tempfile.TemporaryDirectory() as directory,
        both_brokers(Path(directory), areas, settings) as both,
    ):
        for seed in range(options.first, options.first + options.count):
            twin = run(*both.bootstraps, seed, areas, options.steps, listeners=both.listeners)
            told = [f"seed {seed}: {len(twin.steps)} steps", *map(str, twin.differences)]
            told += [f"{number}: {step}" for number, step in enumerate(twin.steps) if options.told]
            sys.stdout.write("\n  ".join(told) + "\n")
            sys.stdout.flush()
            bad += bool(twin.differences)
        found = settled_differences(*both.data)
        sys.stdout.write("\n  ".join(["what they hold:", *found]) + "\n")
    return bad + bool(found)


if __name__ == "__main__":
    sys.exit(main())
