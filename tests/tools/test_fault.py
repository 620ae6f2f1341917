"""``logstore fault``: a served broker that fails when it is told to, and what its clients see."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest

from tests.tools.command_line import CommandLine
from tests.tools.serving import SECONDS_MAX, Serving
from tests.tools.test_serve import consume
from tests.tools.test_serve_rocketmq import send


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """Return a Kafka broker whose control port the commands know."""
    with Serving("--json", "--control-port", 0) as serving:
        monkeypatch.setenv("LOGSTORE_CONTROL", serving.ready["control"])
        yield serving


def produce(serving: Serving, value: bytes) -> str | None:
    """Produce a record without a retry; return the name of the error, if any."""
    told: list[confluent_kafka.KafkaError | None] = []
    settings = {"bootstrap.servers": serving.bootstrap, "retries": 0, "linger.ms": 0}
    producer = confluent_kafka.Producer(settings)
    producer.produce("t", value, on_delivery=lambda error, _: told.append(error))
    assert producer.flush(SECONDS_MAX) == 0
    return None if told[0] is None else told[0].name()


def test_requests_fail(serving: Serving, logstore: CommandLine) -> None:
    """As often as told, and the list says what became of it."""
    planned = logstore("fault", "fail", "Produce", "POLICY_VIOLATION", "--topic", "t", "--times", 2)
    assert planned.lines == [
        "1: fail with POLICY_VIOLATION: Produce, topic t, 2 times; 0 of 0 struck"
    ]
    assert produce(serving, b"a") == "POLICY_VIOLATION"
    assert logstore("fault", "ls").lines == [planned.lines[0].replace("0 of 0", "1 of 1")]
    assert logstore("fault", "clear", 1).exit_code == 0
    assert produce(serving, b"b") is None
    assert consume(serving.bootstrap, 1) == [b"b"]


def test_answers_are_lost(serving: Serving, logstore: CommandLine) -> None:
    """The record is there all the same."""
    assert logstore("fault", "drop", "Produce", "--served").exit_code == 0
    assert produce(serving, b"a") in ("_TRANSPORT", "_MSG_TIMED_OUT", None)
    assert consume(serving.bootstrap, 1) == [b"a"]


def test_every_kind_is_listed(serving: Serving, logstore: CommandLine) -> None:
    """In the words of the help page."""
    logstore("fault", "delay", "Fetch", "2s", "--client", "app-*", "--times", 0, "--chance", 0.5)
    logstore("fault", "hold", "JoinGroup", "--after", 3)
    logstore("fault", "disk", "write", "ENOSPC", "--path", "*/t-0/*", "--times", 0, "--after", 2)
    logstore("fault", "disk-state", "--capacity-bytes", 1000000, "--sync-lies")
    assert logstore("fault", "ls").lines == [
        "1: delay by 2000 ms: Fetch, client app-*, for ever; 0 of 0 struck",
        "2: hold: JoinGroup, once after 3; 0 of 0 struck",
        "disk: write of */t-0/* fails, for ever after 2",
        "disk: sync_lies True",
        "disk: capacity_bytes 1000000",
    ]
    state = logstore("fault", "--json", "ls").json
    assert state["faults"][0]["chance"] == 0.5
    logstore("fault", "release")
    assert [one["number"] for one in logstore("fault", "--json", "ls").json["faults"]] == [1]
    logstore("fault", "clear")
    assert logstore("fault", "ls").out == ""
    assert serving.process.poll() is None


def test_files_fail(serving: Serving, logstore: CommandLine) -> None:
    """The client is told, and the broker goes on when the disk is well."""
    assert produce(serving, b"a") is None
    logstore("fault", "disk", "write", "--path", "*/t-0/*.log")
    assert produce(serving, b"b") == "KAFKA_STORAGE_ERROR"
    logstore("fault", "clear")
    assert consume(serving.bootstrap, 1) == [b"a"]


def test_time_and_leaders(serving: Serving, logstore: CommandLine) -> None:
    """Forth, back, and anew."""
    before = logstore("fault", "--json", "clock", "0").json
    assert (
        logstore("fault", "--json", "clock", "1.5h").json["wall_ms"] - before["wall_ms"]
        >= 5_400_000
    )
    back = logstore("fault", "--json", "clock", "-2h", "--wall-only").json
    assert back["wall_ms"] < before["wall_ms"]
    assert back["monotonic_ms"] - before["monotonic_ms"] >= 5_400_000
    produce(serving, b"a")
    assert logstore("fault", "leaders", "t").lines == ["t-0: leader epoch 1"]
    assert logstore("fault", "leaders", "t", 0).lines == ["t-0: leader epoch 2"]


def test_nodes(monkeypatch: pytest.MonkeyPatch, logstore: CommandLine) -> None:
    """They go and come back, and leaders move to those that are named."""
    with Serving("--json", "--control-port", 0, "--nodes", 2) as serving:
        monkeypatch.setenv("LOGSTORE_CONTROL", serving.ready["control"])
        assert sorted(serving.ready["nodes"]) == ["1", "2"]
        assert serving.bootstrap == ",".join(serving.ready["nodes"].values())
        assert logstore("fault", "stop-node", 1).lines == ["node 1: down", "node 2: up"]
        assert "no node 7" in logstore("fault", "stop-node", 7).err
        assert produce(serving, b"a") is None
        assert consume(serving.ready["nodes"]["2"], 1) == [b"a"]
        assert logstore("fault", "start-node", 1).lines == ["node 1: up", "node 2: up"]
        assert logstore("fault", "leaders", "t", "--to", 2).lines == ["t-0: leader epoch 1"]
        refused = logstore("fault", "leaders", "t", "--to", 1)
        assert (refused.exit_code, "cannot lead" in refused.err) == (1, True)


def test_rocketmq_and_both(monkeypatch: pytest.MonkeyPatch, logstore: CommandLine) -> None:
    """The names are those of the protocols that are served."""
    with Serving("--layout", "rocketmq", "--json", "--control-port", 0,
                 "--broker-port", 0) as serving:  # fmt: skip
        monkeypatch.setenv("LOGSTORE_CONTROL", serving.ready["control"].removeprefix("http://"))
        assert logstore("fault", "fail", "SEND_MESSAGE_V2", "FLUSH_DISK_TIMEOUT").exit_code == 0
        assert send(serving.bootstrap, b"x").code == 10
        assert send(serving.bootstrap, b"x").code == 0
        refused = logstore("fault", "leaders", "t")
        assert (refused.exit_code, "only Kafka's layout" in refused.err) == (1, True)
    with Serving("--protocol", "kafka,rocketmq", "--json", "--control-port", 0,
                 "--broker-port", 0, "--namesrv-port", 0) as serving:  # fmt: skip
        monkeypatch.setenv("LOGSTORE_CONTROL", serving.ready["control"])
        logstore("fault", "fail", "SEND_MESSAGE_V2", "FLUSH_DISK_TIMEOUT")
        logstore("fault", "fail", "Produce", "POLICY_VIOLATION")
        assert send(serving.ready["namesrv"], b"x").code == 10
        assert produce(serving, b"x") == "POLICY_VIOLATION"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["fail", "Prduce", "UNKNOWN"], 1, "did you mean Produce"),
        (["fail", "Produce", "DISK_FULL"], 1, "no error is called 'DISK_FULL'"),
        (["delay", "Produce", "soon"], 2, "'soon': a number with ms, s, m, h or d"),
        (["disk", "explode"], 1, "kind is one of open, read"),
        (["disk-state"], 2, "say what is to become of the disk"),
        (["clear", "9"], 1, "no fault has the number 9"),
        (["leaders", "nothing"], 1, "there is no partition nothing"),
        (["clock", "-1m"], 2, "backwards; --wall-only sets the wall clock back"),
    ],
)
def test_what_makes_no_sense(
    serving: Serving, logstore: CommandLine, arguments: list[str], code: int, text: str
) -> None:
    """Is refused with the reason."""
    outcome = logstore("fault", *arguments)
    assert (outcome.exit_code, text in outcome.err) == (code, True), outcome.err
    assert serving.process.poll() is None


def test_nobody_answers(logstore: CommandLine) -> None:
    """The text says how to start somebody who does."""
    outcome = logstore("fault", "--at", "1", "ls")
    assert outcome.exit_code == 1
    assert "no control port answers at http://127.0.0.1:1" in outcome.err
    assert "serve --control-port" in outcome.err


def test_help_needs_no_broker(monkeypatch: pytest.MonkeyPatch, logstore: CommandLine) -> None:
    """Every command explains itself; what it does wants to know where."""
    monkeypatch.delenv("LOGSTORE_CONTROL", raising=False)
    shown = logstore("fault", "stop-node", "--help")
    assert (shown.exit_code, "NODE" in shown.out) == (0, True)
    refused = logstore("fault", "ls")
    assert (refused.exit_code, "--at [HOST:]PORT" in refused.err) == (2, True)


@pytest.mark.parametrize("address", ["foo:bar", "1:2:3", "99999999"])
def test_what_is_no_address(logstore: CommandLine, address: str) -> None:
    """Nobody answers there either, which is one sentence."""
    outcome = logstore("fault", "--at", address, "ls")
    assert outcome.exit_code == 1
    assert "no control port answers at http://" in outcome.err
