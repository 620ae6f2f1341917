"""Client quotas: set, shown and kept to as by the real broker, by tools and at the wire."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.compat.kafka.batches import batch
from tests.compat.kafka.peer import produce_fields
from tests.interop.access_wire import Asker
from tests.interop.conftest import RunTool, new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.raw_wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SETTINGS: dict[str, object] = {"num.partitions": 1}


class Anybody:
    """A connection without a name."""

    def __init__(self, bootstrap: str) -> None:
        self._wire = Wire(bootstrap)

    def exchange(self, payload: bytes) -> bytes | None:
        """Send and wait."""
        self._wire.send_frame(payload)
        return self._wire.receive_frame()


def asker(bootstrap: str) -> Asker:
    """Return somebody with a connection of their own."""
    return Asker(Anybody(bootstrap))


TOOL_RUNS = (
    ("--alter", "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048",
     "--entity-type", "users", "--entity-name", "alice"),
    ("--alter", "--add-config", "request_percentage=200",
     "--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients",
     "--entity-default"),
    ("--alter", "--add-config", "controller_mutation_rate=1.5",
     "--entity-type", "clients", "--entity-name", "app"),
    ("--alter", "--add-config", "connection_creation_rate=10", "--entity-type", "ips",
     "--entity-default"),
    ("--alter", "--add-config", "connection_creation_rate=20", "--entity-type", "ips",
     "--entity-name", "10.0.0.1"),
    ("--describe", "--entity-type", "users"),
    ("--describe", "--entity-type", "users", "--entity-name", "alice"),
    ("--describe", "--entity-type", "users", "--entity-type", "clients"),
    ("--describe", "--entity-type", "clients", "--entity-name", "app"),
    ("--describe", "--entity-type", "ips"),
    ("--alter", "--delete-config", "producer_byte_rate", "--entity-type", "users",
     "--entity-name", "alice"),
    ("--describe", "--entity-type", "users", "--entity-name", "alice"),
)  # fmt: skip


def said(bootstrap: str, kafka_tool: RunTool) -> list[tuple[int, list[str]]]:
    """Return what kafka-configs prints; the order of entities and limits is not told."""
    runs = [
        kafka_tool(
            "kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap, *words, check=False
        )
        for words in TOOL_RUNS
    ]
    return [(run.status, sorted(map(_sorted_line, run.stdout.splitlines()))) for run in runs]


def _sorted_line(line: str) -> str:
    head, _, limits = line.partition(" are ")
    return f"{head} are {sorted(limits.split(', '))}"


def entry(entity: dict[str, str | None], **limits: float | None) -> dict[str, Any]:
    """Return an entry of an AlterClientQuotas."""
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": value or 0.0, "remove": value is None}
            for key, value in limits.items()
        ],
    }


#: one request each
ENTRIES = (
    entry({}, producer_byte_rate=1.0),
    entry({"planet": "x"}, producer_byte_rate=1.0),
    entry({"user": ""}, producer_byte_rate=1.0),
    entry({"user": "a", "ip": "10.0.0.1"}, producer_byte_rate=1.0),
    entry({"user": "a"}, speed=1.0),
    entry({"user": "a"}, connection_creation_rate=1.0),
    entry({"user": "a"}, producer_byte_rate=-1.0),
    entry({"user": "a"}, producer_byte_rate=1.5),
    entry({"user": "a"}, request_percentage=1.5),
    entry({"user": "a"}, producer_byte_rate=1e30),
    entry({"ip": "10.0.0.1"}, connection_creation_rate=1e10),
    entry({"ip": "10.0.0.1"}, producer_byte_rate=1.0),
    entry({"ip": None}, connection_creation_rate=5.0),
    entry({"client-id": None, "user": None}, controller_mutation_rate=5.0),
    entry({"user": "a"}, consumer_byte_rate=None),
)


def judged(bootstrap: str) -> list[tuple[int, str | None]]:
    """Return code and message of each entry."""
    who = asker(bootstrap)
    answers = [
        who.ask("AlterClientQuotas", 1, {"entries": [one], "validate_only": True})["entries"][0]
        for one in ENTRIES
    ]
    return [(one["error_code"], one["error_message"] or None) for one in answers]


#: each set in a request of its own
LISTED = (
    entry({"user": None}, producer_byte_rate=1.0, consumer_byte_rate=2.0, request_percentage=0.5),
    entry({"client-id": None, "user": "b"}, request_percentage=1.5, consumer_byte_rate=3.0),
    entry({"client-id": "c"}, producer_byte_rate=4.0, controller_mutation_rate=2.0),
    *(entry({"user": f"user-{number}"}, producer_byte_rate=1.0) for number in range(12)),
    entry({"user": "user-3"}, producer_byte_rate=None),
)


def listed(bootstrap: str) -> list[Any]:
    """Set limits; return entities and their limits in the order in which they are told."""
    for one in LISTED:
        change(bootstrap, one)
    who = asker(bootstrap)

    def ask() -> list[Any]:
        fields = {"components": [], "strict": False}
        found: list[Any] = who.ask("DescribeClientQuotas", 1, fields)["entries"]
        return found

    eventually(lambda: all("user-3" not in str(one["entity"]) for one in ask()))
    return ask()


def throttled(bootstrap: str) -> tuple[int, int, list[int]]:
    """
    Go over the limits of client id `test`.

    Returns for how long a producer was told to keep still, rounded, whether its answer told of an
    error, and the codes of topics that are made until there are no tokens.
    """
    new_topic(bootstrap, "t")
    who = asker(bootstrap)
    limits = {"producer_byte_rate": 100.0, "controller_mutation_rate": 1.0}
    fields = {"entries": [entry({"client-id": "test"}, **limits)], "validate_only": False}
    assert who.ask("AlterClientQuotas", 1, fields)["entries"][0]["error_code"] == 0
    produced: dict[str, Any] = {}

    def is_throttled() -> bool:
        nonlocal produced
        request = produce_fields([("t", [(0, batch(b"v" * 2000))])], 9, 1)
        produced = asker(bootstrap).ask("Produce", 9, request)
        return bool(produced["throttle_time_ms"])

    eventually(is_throttled)
    code = produced["responses"][0]["partition_responses"][0]["error_code"]
    made = [
        asker(bootstrap).ask("CreateTopics", 7, {
            "timeout_ms": 5000, "validate_only": False,
            "topics": [{"name": f"made-{number}", "num_partitions": 12, "replication_factor": 1,
                        "assignments": [], "configs": []}],
        })
        for number in range(2)
    ]  # fmt: skip
    codes = [one["topics"][0]["error_code"] for one in made]
    assert made[1]["throttle_time_ms"] > 0
    return round(produced["throttle_time_ms"], -3), code, codes


def test_quotas_are_the_same_at_both(tmp_path: Path, kafka_tool: RunTool) -> None:
    """Tools print the same, what cannot be is refused so, and clients are told to keep still."""
    real = start_real(tmp_path / "real", settings=SETTINGS)
    ours = OurBroker(tmp_path / "ours", SETTINGS).start()
    try:
        expected = said(real.bootstrap, kafka_tool)
        assert said(ours.bootstrap, kafka_tool) == expected
        assert any("producer_byte_rate" in line for line in expected[6][1])
        assert judged(ours.bootstrap) == judged(real.bootstrap)
        assert listed(ours.bootstrap) == listed(real.bootstrap)
        assert throttled(ours.bootstrap) == throttled(real.bootstrap)
    finally:
        ours.stop()
        real.stop(kill=True)


def kept(bootstrap: str) -> list[Any]:
    """Return all limits."""
    answer = asker(bootstrap).ask("DescribeClientQuotas", 1, {"components": [], "strict": False})
    return sorted(
        (
            sorted((one["entity_type"], one["entity_name"] or "") for one in found["entity"]),
            sorted((one["key"], one["value"]) for one in found["values"]),
        )
        for found in answer["entries"]
    )


def test_limits_change_hands(tmp_path: Path) -> None:
    """What the real broker keeps ours goes on with, and the real one with what ours has changed."""
    real = start_real(tmp_path / "real")
    change(real.bootstrap, entry({"user": "a"}, producer_byte_rate=5.0))
    change(real.bootstrap, entry({"user": None, "client-id": "c"}, request_percentage=1.5))
    eventually(lambda: len(kept(real.bootstrap)) == 2)
    before = kept(real.bootstrap)
    real.stop()
    ours = OurBroker(tmp_path / "ours", data=real.data).start()
    assert kept(ours.bootstrap) == before
    change(ours.bootstrap, entry({"user": "a"}, producer_byte_rate=None))
    change(ours.bootstrap, entry({"ip": "10.0.0.1"}, connection_creation_rate=2.0))
    after = kept(ours.bootstrap)
    ours.stop()
    real.start()
    try:
        eventually(lambda: kept(real.bootstrap) == after)
    finally:
        real.stop(kill=True)


def paused(bootstrap: str) -> list[Any]:
    """
    Limit the time of client id `test`, and ask until it is told to keep still.

    Returns what was told by each API then, and before there was a limit.
    """
    new_topic(bootstrap, "slow")
    fetched = {
        "replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20,
        "isolation_level": 0, "session_id": 0, "session_epoch": -1, "forgotten_topics_data": [],
        "rack_id": "", "topics": [{"topic": "slow", "partitions": [{
            "partition": 0, "current_leader_epoch": -1, "fetch_offset": 0,
            "last_fetched_epoch": -1, "log_start_offset": -1, "partition_max_bytes": 1 << 20,
        }]}],
    }  # fmt: skip
    asked: list[tuple[str, int, dict[str, Any]]] = [
        ("Produce", 9, produce_fields([("slow", [(0, batch(b"v"))])], 9, 1)),
        ("Fetch", 12, fetched),
        ("ListGroups", 3, {"states_filter": []}),
        ("ApiVersions", 3, {"client_software_name": "a", "client_software_version": "1"}),
        ("DescribeCluster", 0, {"include_cluster_authorized_operations": False}),
        ("OffsetDelete", 0, {"group_id": "nobodys", "topics": []}),
        ("CreatePartitions", 3, {"topics": [], "timeout_ms": 1000, "validate_only": False}),
    ]

    def told() -> list[int]:
        """Return the time that each is told to keep still; none waits for the one before it."""
        return [asker(bootstrap).ask(*one)["throttle_time_ms"] for one in asked]

    before = told()
    tiny = {"request_percentage": 0.0001}
    change(bootstrap, entry({"client-id": "test"}, **tiny))
    eventually(lambda: all(told()), what="the limit of time")
    begin = time.monotonic()
    who = asker(bootstrap)
    pauses = [who.ask("ListGroups", 3, {"states_filter": []})["throttle_time_ms"] for _ in range(2)]
    seconds = time.monotonic() - begin
    empty = asker(bootstrap).ask("Fetch", 12, fetched)["responses"]
    change(bootstrap, entry({"client-id": "test"}, request_percentage=None))
    eventually(lambda: not any(told()), what="no limit of time")
    return [before, told(), pauses, seconds > 0.9, empty]


def test_time_is_limited_at_both(tmp_path: Path) -> None:
    """With a tiny share every request is told to keep still for a sample's length, else none."""
    settings = SETTINGS | {"group.initial.rebalance.delay.ms": 0}
    real = start_real(tmp_path / "real", settings=settings)
    ours = OurBroker(tmp_path / "ours", settings).start()
    try:
        expected = paused(real.bootstrap)
        assert expected == [[0] * 7, [0] * 7, [1000] * 2, True, []]
        assert paused(ours.bootstrap) == expected
    finally:
        ours.stop()
        real.stop(kill=True)


def change(bootstrap: str, one: dict[str, Any]) -> None:
    """Change the limits of one entity."""
    fields = {"entries": [one], "validate_only": False}
    answer = asker(bootstrap).ask("AlterClientQuotas", 1, fields)
    assert answer["entries"][0]["error_code"] == 0
