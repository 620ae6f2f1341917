"""Sessions drawn from seeds: whatever is asked, a real broker and ours answer the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from logstore.compat import TestBroker
from tests.interop.clients import settings as client_settings
from tests.interop.conftest import (
    led_partitions,
    new_topic,
    start_real,
)
from tests.interop.drawn.line import Line
from tests.interop.drawn.pair import Pair
from tests.interop.drawn.session import run
from tests.interop.drawn.stage import SECURED, Both, both_brokers
from tests.interop.drawn.twin import Twin
from tests.interop.eventually import eventually
from tests.interop.stored_records import settled_differences

pytestmark = pytest.mark.interop

FENCED = 74
TOPIC = "led-anew"
LOGINS_SEED, DELEGATIONS_SEED, MIGRATIONS_SEED = 12144, 12301, 12501
#: what is asked about, and by which seeds
SESSIONS = (
    (("topics", "records"), (3, 6, 8)),
    (("groups",), (1, 2, 6)),
    (("transactions",), (1, 3, 7)),
    (("configs",), (1, 2, 4)),
    (("cluster",), (0, 1)),
    (("shares",), (100,)),
    (("streams",), (105,)),
    (("stores",), (11034,)),
    (("fetches",), (11204,)),
    (("lists",), (11305,)),
    (("bursts",), (11511,)),
    (("inquiries",), (11640,)),
    (("decrees",), (11647,)),
    (("expressions",), (11943,)),
    (("cursors",), (12601,)),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Our broker and a real one, where everybody may do everything."""
    with both_brokers(tmp_path_factory.mktemp("drawn"), ()) as found:
        yield found


@pytest.fixture(scope="module")
def led_anew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A broker of ours whose leaders have moved, and a real one that was started again."""
    real = start_real(tmp_path_factory.mktemp("again"))
    try:
        new_topic(real.bootstrap, TOPIC)
        real.stop()
        real.start()
        admin = AdminClient(client_settings(real.bootstrap))
        eventually(lambda: led_partitions(admin, TOPIC) == [0], what=TOPIC)
        epoch = epoch_of(Line(real.bootstrap))
        with TestBroker() as ours:
            ours.create_topic(TOPIC)
            for _ in range(epoch):
                ours.move_leaders(TOPIC)
            yield ours.bootstrap, real.bootstrap
    finally:
        real.stop()


def epoch_of(line: Line) -> int:
    """Return the epoch in which the topic is led."""
    line.send("Metadata", 12, {"Topics": [{"Name": TOPIC}]})
    answer = line.receive(30)
    line.close()
    assert isinstance(answer, dict)
    found: int = answer["Topics"][0]["Partitions"][0]["LeaderEpoch"]
    return found


@pytest.mark.parametrize(
    ("areas", "seed"),
    [
        pytest.param(areas, seed, id=f"{'-'.join(areas)}-{seed}")
        for areas, seeds in SESSIONS
        for seed in seeds
    ],
)
def test_a_drawn_session_is_answered_alike(areas: tuple[str, ...], seed: int, both: Both) -> None:
    """Field by field, but for what each broker makes up by itself."""
    twin = run(*both.bootstraps, seed, areas, prefix=areas[0])
    assert len(twin.steps) >= 60
    assert "\n".join(map(str, twin.differences)) == ""


def test_both_hold_the_same(both: Both) -> None:
    """After all these sessions, but for ids and times: batches, coordinators' records, metadata."""
    assert "\n".join(settled_differences(*both.data)) == ""


def test_groups_of_both_protocols_are_answered_alike(both: Both) -> None:
    """The same, and last: who looks whether coordinators know of topics leaves records."""
    twin = run(*both.bootstraps, MIGRATIONS_SEED, ("migrations",), prefix="migrations")
    assert len(twin.steps) >= 50
    assert "\n".join(map(str, twin.differences)) == ""


def test_rules_are_made_and_found_alike(tmp_path: Path) -> None:
    """The same of rules of access, with an authorizer at both; and they are kept alike."""
    with both_brokers(tmp_path, ("acls",)) as both:
        for seed in (0, 1, 2):
            twin = run(*both.bootstraps, seed, ("acls",))
            assert "\n".join(map(str, twin.differences)) == ""
        assert "\n".join(settled_differences(*both.data)) == ""


def test_clients_log_in_alike(tmp_path: Path) -> None:
    """The same of listeners with logins: who is let in and how, and whose tokens there are."""
    with both_brokers(tmp_path, SECURED) as both:
        for area, seed in (("logins", LOGINS_SEED), ("delegations", DELEGATIONS_SEED)):
            twin = run(*both.bootstraps, seed, (area,), 30, area, both.listeners)
            assert len(twin.steps) >= 40
            assert "\n".join(map(str, twin.differences)) == ""
        assert "\n".join(settled_differences(*both.data)) == ""


@pytest.mark.parametrize("version", [15, 16, 18])
def test_an_epoch_that_is_over_is_refused_alike(version: int, led_anew: tuple[str, str]) -> None:
    """Who comes with it is told who leads now, from v16 on also where that is."""
    twin = Twin(*led_anew)
    found = twin.exchange("Metadata", 12, {"Topics": [{"Name": TOPIC}]})
    topic = Pair(*(side["Topics"][0]["TopicId"] for side in found))
    partition = {"Partition": 0, "CurrentLeaderEpoch": 0, "PartitionMaxBytes": 1000}
    body = {"MaxBytes": 1000, "Topics": [{"TopicId": topic, "Partitions": [partition]}]}
    answer = twin.ask("Fetch", version, body)
    twin.close()
    assert "\n".join(map(str, twin.differences)) == ""
    (told,) = answer.ours["Responses"][0]["Partitions"]
    is_told = version >= 16
    assert told["ErrorCode"] == FENCED
    assert (told["CurrentLeader"]["LeaderEpoch"] > 0) == is_told
    endpoints = [f"{one['Host']}:{one['Port']}" for one in answer.ours.get("NodeEndpoints", ())]
    assert endpoints == ([led_anew[0]] if is_told else [])
