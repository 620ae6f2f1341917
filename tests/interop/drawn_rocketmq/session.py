"""
A session is drawn from a seed and put to a real name server and broker, and to ours.

To run many: ``./dev run python -m tests.interop.drawn_rocketmq.session --first 0 --count 100``.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from tests.interop.drawn_rocketmq import (
    access,
    brokers,
    callers,
    flags,
    frames,
    groups,
    keys,
    lites,
    losses,
    marks,
    moments,
    names,
    offsets,
    pops,
    properties,
    pulls,
    restarts,
    sends,
    settings,
    statics,
    timers,
    topics,
    transactions,
)
from tests.interop.drawn_rocketmq.stage import Stage
from tests.interop.drawn_rocketmq.twin import Twin
from tests.interop.drawn_rocketmq.world import World
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_access_session import PROVIDERS

Draw = Callable[[World], None]
#: what both brokers are told: the filters of SQL are served, half messages are not checked, there
#: may be users, though nobody has to sign, and pops do not look at retries first by chance
SETTINGS: dict[str, object] = {
    **CALM,
    **PROVIDERS,
    "enablePropertyFilter": "true",
    "transactionCheckInterval": 3_600_000,
    "transactionTimeOut": 6_000,
    "recallMessageEnable": "true",
    "enableLmq": "true",
    "enableMultiDispatch": "true",
    "popFromRetryProbability": "0",
}
#: what may be done, and how often beside the others
TOPICS: tuple[tuple[int, Draw], ...] = (
    (6, topics.create_topic),
    (3, topics.create_topics),
    (1, topics.delete),
    (4, topics.config),
    (1, topics.all_configs),
    (3, topics.stats),
    (1, topics.system_topics),
    (2, topics.route),
    (1, topics.clean),
)
RECORDS: tuple[tuple[int, Draw], ...] = (
    (8, sends.send_plainly),
    (8, sends.send),
    (3, sends.send_batch),
    (1, sends.send_batch_by),
    (3, sends.send_back),
    (2, sends.give_up),
    (1, sends.reply),
    (8, pulls.pull),
    (2, pulls.pull_and_wait),
    (4, pulls.bounds),
    (2, pulls.earliest),
    (3, pulls.search_by_time),
    (3, pulls.query_by_key),
    (2, pulls.view),
    (2, pulls.consume_queue),
    (1, topics.create_topic),
)
GROUPS: tuple[tuple[int, Draw], ...] = (
    (3, sends.send_plainly),
    (5, groups.update),
    (3, groups.config),
    (1, groups.delete),
    (1, groups.all_configs),
    (2, groups.forbid),
    (8, groups.heartbeat),
    (3, groups.unregister),
    (2, groups.check_client),
    (6, groups.connections),
    (4, groups.ask_clients),
    (4, groups.lock),
    (2, groups.request_mode),
    (3, groups.assignment),
    (1, groups.hang_up),
    (2, pulls.pull_plainly),
    (5, offsets.commit),
    (5, offsets.query),
    (3, offsets.reset),
    (2, offsets.clone),
    (2, offsets.correction),
    (3, offsets.consume_stats),
    (1, offsets.broker_consume_stats),
    (2, offsets.time_span),
    (3, offsets.who_consumes),
    (1, offsets.all_offsets),
)
POPS: tuple[tuple[int, Draw], ...] = (
    (8, sends.send_plainly),
    (8, pops.pop),
    (2, pops.pop_and_wait),
    (4, pops.pop_in_order),
    (5, pops.ack),
    (2, pops.ack_batch),
    (3, pops.change),
    (3, pops.peek),
    (3, pops.notification),
    (2, pops.notification_waited_for),
    (2, pops.polling),
    (1, offsets.commit_near),
    (2, offsets.query),
)
TRANSACTIONS: tuple[tuple[int, Draw], ...] = (
    (6, transactions.send_half),
    (6, transactions.end),
    (1, transactions.resume),
    (3, pulls.pull),
    (2, pulls.bounds),
    (1, pulls.query_by_key),
)
SETTINGS_ASKED: tuple[tuple[int, Draw], ...] = (
    (4, settings.update),
    (2, settings.get),
    (1, settings.runtime_info),
    (5, settings.stats_data),
    (3, settings.cold_data),
    (4, settings.odds),
    (4, settings.unknown),
    (3, sends.send_plainly),
    (2, pulls.pull_plainly),
)
NAMES: tuple[tuple[int, Draw], ...] = (
    (6, names.register),
    (2, names.unregister),
    (6, names.route),
    (4, names.lists),
    (2, names.by_cluster),
    (2, names.member_group),
    (1, names.beat),
    (3, names.data_version),
    (2, names.wipe),
    (6, names.texts),
    (3, names.topics),
    (3, names.settings),
    (1, names.unknown),
)
ACCESS: tuple[tuple[int, Draw], ...] = (
    (6, access.change_user),
    (4, access.ask_for_users),
    (6, access.change_rights),
    (4, access.ask_for_rights),
)
FRAMES: tuple[tuple[int, Draw], ...] = (
    (4, frames.odd_header),
    (2, frames.flagged),
    (3, frames.binary),
    (3, frames.nonsense),
)
LITES: tuple[tuple[int, Draw], ...] = (
    (10, lites.send),
    (6, lites.subscribe),
    (10, lites.pop),
    (8, lites.ack),
    (2, lites.change),
    (3, lites.told_of_topic),
    (4, lites.told_of_readers),
    (1, lites.look),
    (3, lites.bounds),
)
TIMERS: tuple[tuple[int, Draw], ...] = (
    (6, timers.send_timed),
    (10, timers.recall),
    (3, timers.metrics),
    (4, timers.tables),
    (2, sends.send_plainly),
)
STATICS: tuple[tuple[int, Draw], ...] = (
    (5, statics.define),
    (10, statics.send),
    (8, statics.pull),
    (6, statics.bounds),
    (4, statics.offsets),
    (4, statics.told),
    (1, statics.route),
    (1, statics.delete),
)
BROKERS: tuple[tuple[int, Draw], ...] = (
    (10, brokers.register),
    (12, brokers.route),
    (2, brokers.forget),
    (2, names.unregister),
    (2, names.lists),
    (1, names.by_cluster),
    (1, names.member_group),
    (1, names.data_version),
    (1, names.wipe),
    (1, names.beat),
)
MARKS: tuple[tuple[int, Draw], ...] = (
    (12, marks.send),
    (4, marks.send_batch),
    (3, marks.repeat),
    (3, marks.send_half),
    (1, marks.give_back),
    (6, marks.pull),
    (5, marks.query),
    (2, pulls.view),
    (1, pulls.consume_queue),
    (1, pulls.bounds),
)
RESTARTS: tuple[tuple[int, Draw], ...] = (
    (3, restarts.restart),
    (10, sends.send_plainly),
    (3, sends.send_batch),
    (3, sends.send_back),
    (6, restarts.send_light),
    (3, restarts.commit_light),
    (6, restarts.send_soon),
    (4, timers.send_timed),
    (2, timers.recall),
    (6, restarts.pop_soon),
    (3, pops.pop),
    (3, pops.pop_in_order),
    (4, pops.ack),
    (2, pops.change),
    (2, pops.notification),
    (4, restarts.send_half),
    (5, restarts.decide),
    (5, offsets.commit),
    (2, offsets.reset),
    (1, offsets.clone),
    (2, groups.update),
    (2, groups.forbid),
    (2, groups.heartbeat),
    (1, groups.delete),
    (2, groups.request_mode),
    (2, topics.create_topic),
    (1, topics.delete),
    (2, pulls.pull_plainly),
)
FLAGS: tuple[tuple[int, Draw], ...] = (
    (14, flags.send),
    (7, flags.send_batch),
    (1, flags.send_reply),
    (3, flags.give_back),
    (8, flags.pull),
    (2, flags.pop),
    (4, flags.ask_by_id),
    (2, pulls.view),
    (2, pulls.consume_queue),
    (2, pulls.bounds),
    (1, pulls.search_by_time),
    (1, marks.query),
    (2, transactions.end),
)
CALLERS: tuple[tuple[int, Draw], ...] = (
    (10, callers.beat),
    (2, callers.leave),
    (6, callers.lists),
    (6, callers.ask_one),
    (6, callers.ask_all),
    (4, callers.commit),
    (8, callers.reset),
    (2, sends.send_plainly),
)
MOMENTS: tuple[tuple[int, Draw], ...] = (
    (8, moments.send),
    (10, moments.search),
    (6, moments.reset),
    (6, moments.figures),
    (6, moments.look_inside),
)
KEYS: tuple[tuple[int, Draw], ...] = (
    (14, keys.send),
    (4, keys.send_batch),
    (14, keys.query),
    (6, keys.view),
    (6, keys.bounds),
    (1, keys.pause),
)
PROPERTIES: tuple[tuple[int, Draw], ...] = (
    (14, properties.send),
    (2, properties.send_long),
    (5, properties.send_oddly),
    (2, properties.send_halves),
    (6, properties.send_batch),
    (8, properties.pull),
    (4, properties.look),
)
LOSSES: tuple[tuple[int, Draw], ...] = (*KEYS, (2, losses.restart), (1, losses.remove_old))
AREAS: dict[str, tuple[tuple[int, Draw], ...]] = {
    "topics": TOPICS,
    "records": RECORDS,
    "groups": GROUPS,
    "pops": POPS,
    "lites": LITES,
    "transactions": TRANSACTIONS,
    "settings": SETTINGS_ASKED,
    "names": NAMES,
    "access": ACCESS,
    "frames": FRAMES,
    "brokers": BROKERS,
    "timers": TIMERS,
    "statics": STATICS,
    "marks": MARKS,
    "restarts": RESTARTS,
    "flags": FLAGS,
    "callers": CALLERS,
    "moments": MOMENTS,
    "keys": KEYS,
    "losses": LOSSES,
    "properties": PROPERTIES,
}
#: what brokers are told for an area alone
SETTINGS_OF: dict[str, dict[str, object]] = dict.fromkeys(("keys", "losses"), keys.SETTINGS)
#: which only who names them gets
_BY_NAME = {"marks", "restarts", "flags", "callers", "moments", "keys", "losses", "properties"}


def run(
    ours: tuple[str, str],
    real: tuple[str, str],
    seed: int,
    areas: Sequence[str] = (),
    steps: int = 80,
    prefix: str = "",
    stage: Stage | None = None,
) -> Twin:
    """
    Lead both, of which name server and broker are given, through the session of a seed.

    Where they are to be restarted, `stage` is by what.
    """
    chance = random.Random(seed)
    twin = Twin(ours, real, callers.REPLIES if "callers" in areas else groups.REPLIES)
    world = World(twin, chance, f"{prefix}s{seed}", stage=stage)
    chosen = areas or [area for area in AREAS if area not in _BY_NAME]
    drawn = [one for area in chosen for one in AREAS[area]]
    weights = [weight for weight, _ in drawn]
    try:
        topics.first_topics(world)
        if not {"pops", "restarts", "moments"}.isdisjoint(areas):
            groups.first_groups(world)
        if "lites" in chosen:
            lites.first_parents(world)
        if "statics" in chosen:
            statics.first_topics(world)
        if "flags" in chosen:
            flags.first_topics(world)
        if "moments" in chosen:
            moments.first_topics(world)
        if "properties" in chosen:
            properties.first_topics(world)
        for _ in range(steps):
            ((_, draw),) = chance.choices(drawn, weights)
            draw(world)
            twin.settle()
        if "restarts" in chosen:
            restarts.end(world)
        if not {"keys", "losses"}.isdisjoint(chosen):
            keys.compare_files(world)
        if "brokers" in chosen:
            brokers.keep(world)
        if not {"names", "brokers"}.isdisjoint(chosen):
            names.leave(world)
        twin.compare_told()
    finally:
        twin.close()
    return twin


def main() -> int:
    """Run the sessions of some seeds, tell what is different, return in how many."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--areas", default="", help="some of: " + ",".join(AREAS))
    parser.add_argument("--alone", action="store_true", help="new brokers for every seed")
    parser.add_argument("--told", action="store_true", help="all requests of each session")
    options = parser.parse_args()
    areas = [one for one in options.areas.split(",") if one]
    bad, seeds = 0, range(options.first, options.first + options.count)
    for some in [[seed] for seed in seeds] if options.alone else [list(seeds)]:
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            settings = SETTINGS | SETTINGS_OF.get(options.areas, {})
            real = stack.enter_context(
                RocketMQPeer("5", directory / "real", settings, is_busy=True)
            )
            ours = stack.enter_context(OurRocketMQ(directory / "ours", settings))
            addresses = [(one.bootstrap, one.broker_address) for one in (ours, real)]
            stage = Stage(ours, real)
            for seed in some:
                twin = run(addresses[0], addresses[1], seed, areas, options.steps, stage=stage)
                told = [f"seed {seed}: {len(twin.steps)} steps", *map(str, twin.differences)]
                steps = enumerate(twin.steps) if options.told else ()
                told += [f"{number}: {step}" for number, step in steps]
                sys.stdout.write("\n  ".join(told) + "\n")
                sys.stdout.flush()
                bad += bool(twin.differences)
    return bad


if __name__ == "__main__":
    sys.exit(main())
