"""``kafka-share-groups.sh`` at a real Kafka and at ours: it prints the same."""

from __future__ import annotations

import re
from contextlib import closing

import pytest

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.clients import CLIENTS
from tests.interop.conftest import RunTool, new_topic
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.samples import numbered
from tests.interop.share_wire import ShareWire
from tests.interop.test_same_share_groups import is_loaded
from tests.interop.tool_session import Done

pytestmark = [pytest.mark.interop, pytest.mark.slow]

GROUP, TOPIC, UNKNOWN = "tool-readers", "tool-work", "tool-nobody"
RECORDS, SECONDS_MAX = 12, 60


class Told:
    """What the tool prints of a broker, question by question."""

    def __init__(self, bootstrap: str, run: RunTool) -> None:
        self._bootstrap, self._run = bootstrap, run
        self.outputs: list[tuple[tuple[str, ...], int, list[str], list[str]]] = []

    def ask(self, *words: str, group: str = GROUP) -> Done:
        """Ask, and note what was printed."""
        address = ("--bootstrap-server", self._bootstrap)
        about = () if words[0] == "--list" else ("--group", group)
        done = self._run("ShareGroupCommand", *address, *words, *about, check=False)
        printed = (plain(done.stdout), plain(done.stderr))
        self.outputs.append((words, done.status, *printed))
        return done


def plain(text: str) -> list[str]:
    """Return the words of each line, without ids that a broker made up."""
    lines = [re.sub(r"127\.0\.0\.1:\d+|[0-9a-f-]{36}", "X", line) for line in text.splitlines()]
    return sorted(" ".join(line.split()) for line in lines if line.strip())


def administered(bootstrap: str, run: RunTool) -> Told:
    """Return what the tool prints while a group has a member, and when it has none any more."""
    new_topic(bootstrap, TOPIC, 2)
    is_loaded(bootstrap)
    CLIENTS[0].produce(bootstrap, TOPIC, numbered(RECORDS))
    told = Told(bootstrap, run)
    with closing(ShareWire(bootstrap)) as wire:

        def joined() -> bool:
            return wire.share_beat(GROUP, "A", 0, subscribed_topic_names=(TOPIC,)).error_code == 0

        eventually(joined, what="a member", seconds=SECONDS_MAX)
        eventually(
            lambda: [len(topic.partitions) for topic in wire.starts(GROUP).topics] == [2],
            what="states", seconds=SECONDS_MAX,
        )  # fmt: skip
        eventually(
            lambda: wire.share_beat(GROUP, "A", 0, subscribed_topic_names=(TOPIC,)).assignment
            != of_nothing(wire),
            what="an assignment", seconds=SECONDS_MAX,
        )  # fmt: skip
        told.ask("--list")
        told.ask("--list", "--state")
        for what in ("--offsets", "--members", "--state"):
            told.ask("--describe", what)
        told.ask("--describe", "--members", "--verbose")
        told.ask("--reset-offsets", "--topic", TOPIC, "--to-earliest", "--execute")
        told.ask("--delete")
        assert wire.share_beat(GROUP, "A", -1).error_code == 0
    told.ask("--describe", "--state", "--verbose")
    told.ask("--reset-offsets", "--topic", TOPIC, "--to-earliest", "--dry-run")
    told.ask("--reset-offsets", "--topic", TOPIC, "--to-earliest", "--execute")
    told.ask("--describe", "--offsets", "--verbose")
    told.ask("--reset-offsets", "--topic", f"{TOPIC}:1", "--to-latest", "--execute")
    told.ask("--describe")
    told.ask("--delete-offsets", "--topic", TOPIC)
    told.ask("--delete-offsets", "--topic", TOPIC)
    told.ask("--describe", "--offsets")
    told.ask("--delete")
    told.ask("--list")
    for what in ("--offsets", "--state"):
        told.ask("--describe", what, group=UNKNOWN)
    told.ask("--delete", group=UNKNOWN)
    return told


def of_nothing(wire: ShareWire) -> object:
    """Return the assignment of a member that may read nothing."""
    member = "nobody"
    answer = wire.share_beat("tool-empty", member, 0, subscribed_topic_names=("tool-none",))
    wire.share_beat("tool-empty", member, -1)
    return answer.assignment


def test_it_prints_the_same(
    real: KafkaPeer, ours: OurBroker, foreign: OurBroker, kafka_tool: RunTool
) -> None:
    """Groups are listed, described, moved, let forget and deleted alike, on either layout."""
    theirs = administered(real.bootstrap, kafka_tool)
    for broker in (ours, foreign):
        mine = administered(broker.bootstrap, kafka_tool)
        for ask, told in zip(mine.outputs, theirs.outputs, strict=True):
            assert ask == told
    statuses = {words: status for words, status, _, _ in theirs.outputs}
    assert statuses["--describe", "--offsets"] == 0
