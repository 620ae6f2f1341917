"""
A session of gRPC calls is drawn from a seed and put to a real proxy, and to ours.

To run many: ``./dev run python -m tests.interop.drawn_rocketmq.rpc_session --first 0 --count 100``.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from logstore.compat import TestBroker
from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from logstore.tools.dev.rocketmq_proxy_peer import RocketMQProxyPeer
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq import rpc_draws, rpc_odds
from tests.interop.drawn_rocketmq.rpcs import KINDS, Calls, topic_name
from tests.interop.rocketmq_programs import admin_session

SETTINGS = {
    "brokerName": "broker-a",
    "recallMessageEnable": "true",
    "transactionCheckInterval": "3600000",
}
DRAWS: tuple[tuple[int, Callable[[Calls], None]], ...] = (
    (16, rpc_draws.send),
    (3, rpc_draws.receive),
    (7, rpc_draws.ack),
    (5, rpc_draws.change),
    (4, rpc_draws.bury),
    (5, rpc_draws.end_transaction),
    (5, rpc_draws.recall),
    (6, rpc_draws.route),
    (4, rpc_draws.beat),
    (6, rpc_draws.settle),
)
ODDS: tuple[tuple[int, Callable[[Calls], None]], ...] = (
    (6, rpc_draws.send),
    (2, rpc_draws.receive),
    (3, rpc_draws.settle),
    (14, rpc_odds.send),
    (4, rpc_odds.born),
    (14, rpc_odds.with_handle),
    (5, rpc_odds.route),
    (8, rpc_odds.with_headers),
    (4, rpc_odds.recall),
    (5, rpc_odds.sync_lite),
    (4, rpc_odds.end_transaction),
    (2, rpc_odds.receive),
)
AREAS = {"calls": DRAWS, "odds": ODDS}


def run(ours: str, real: str, seed: int, steps: int = 80, area: str = "calls") -> Calls:
    """Lead both, of which the proxies are given, through the session of a seed."""
    chance = random.Random(seed)
    calls = Calls(Pair(ours, real), chance, f"s{seed}")
    draws = AREAS[area]
    weights = [weight for weight, _ in draws]
    try:
        rpc_draws.first(calls)
        for _ in range(steps):
            ((_, draw),) = chance.choices(draws, weights)
            draw(calls)
    finally:
        calls.close_all()
    return calls


def make_topics(ours: TestBroker, real: RocketMQPeer, directory: Path) -> None:
    """Make the topics of all sessions in both."""
    for kind in KINDS:
        ours.create_topic(topic_name(kind), 1, message_type=kind.upper())
    admin_session("5", directory, *topic_commands(real.bootstrap))


def topic_commands(name_server: str) -> list[tuple[str, ...]]:
    """Return the commands of mqadmin that make the topics of all sessions."""
    words = ("updateTopic", "-n", name_server, "-c", "DefaultCluster", "-r", "1", "-w", "1", "-t")
    return [(*words, topic_name(kind), "-a", f"+message.type={kind.upper()}") for kind in KINDS]


def main() -> int:
    """Run the sessions of some seeds, tell what is different, return in how many."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--area", default="calls", choices=AREAS)
    parser.add_argument("--told", action="store_true", help="all requests of each session")
    options = parser.parse_args()
    bad = 0
    with (
        tempfile.TemporaryDirectory() as name,
        RocketMQPeer("5", Path(name, "real"), {**SETTINGS, **CALM}, is_busy=True) as real,
        RocketMQProxyPeer(real.bootstrap, Path(name, "proxy")) as proxy,
        TestBroker(layout="rocketmq", proxy=True, settings=SETTINGS) as ours,
    ):
        make_topics(ours, real, Path(name))
        for seed in range(options.first, options.first + options.count):
            calls = run(ours.endpoints, proxy.endpoints, seed, options.steps, options.area)
            told = [f"seed {seed}: {len(calls.steps)} steps", *calls.differences]
            told += [f"{n}: {one}" for n, one in enumerate(calls.steps)] if options.told else []
            sys.stdout.write("\n  ".join(told) + "\n")
            sys.stdout.flush()
            bad += bool(calls.differences)
    return bad


if __name__ == "__main__":
    sys.exit(main())
