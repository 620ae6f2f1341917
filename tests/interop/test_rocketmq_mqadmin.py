"""
Commands of mqadmin 5.5.0 print the same of our broker as of a real one, good and bad arguments.

Both have seen the same traffic: topics with ordered, delayed, timed, transactional and popped
messages, dead letters, groups whose consumers are there and one whose consumer has left. What
``test_rocketmq_clients`` compares is not repeated, and of the commands for users and rules
(``test_rocketmq_access``) only what is missing there. What is right to differ stands in SKIPPED.md.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from tests.interop.java_programs import rocketmq_program
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_access_session import PROVIDERS
from tests.interop.rocketmq_programs import JAVA_SOURCES, Broker, run_program
from tests.interop.rocketmq_sessions import started

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SOURCES = [*JAVA_SOURCES, Path(__file__).parent / "rocketmq_java_5" / "AdminStage.java"]
SETTINGS: dict[str, object] = {
    **PROVIDERS,
    "traceTopicEnable": "true",
    "transactionCheckInterval": 3_600_000,
    "transactionTimeOut": 60_000,
}


def commands_of(name: str) -> list[str]:
    """Return the lines of a file without notes."""
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


COMMANDS = commands_of("mqadmin_commands.txt")
OF_A_CLUSTER = commands_of("mqadmin_cluster_commands.txt")
TOPIC = {
    "readQueueNums": 2, "writeQueueNums": 3, "perm": 6, "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0, "order": False,
}  # fmt: skip
#: what differs from run to run, or from machine to machine
MASKS = (
    (r"\s+", " "),
    (r"127\.0\.0\.1:\d+|(\d+\.){3}\d+(:\d+)?", "ADDRESS"),
    (r"\b[0-9A-F]{32,56}\b", "ID"),
    (r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d([,:]\d+)?", "TIME"),
    (r"\b1[78]\d{11}\b", "MS"),
    (r"Consume TPS: .*", "Consume TPS"),
    (r"(CLUSTERING|BROADCASTING|OFFLINE) -?\d+", r"\1"),
    (r"spentTimeMills=\d+|CommitLog Offset: \d+|commitLogOffset=\d+|(?<=@ID@)\d+", ""),
)
#: how long something took, and to which queue it went by chance
OF_THE_MOMENT = ("sendMsgStatus", "checkMsgSendRT", "clusterRT")
#: their order is that of tables of hashes: by connection, or by who came first of two
SHUFFLED = ("producer ", "topicList")
#: what comes when a client gets round to it: its own producer, and its offset in its retry topic
IN_TIME = re.compile(r"producer group \(CLIENT_INNER_PRODUCER\)|%RETRY%\S+ broker-a 0 0 0 ")
EXPORTS = (
    "configs.json", "metadata.json", "metrics.json", "topics/topic.json",
    "groups/subscriptionGroup.json",
)  # fmt: skip
#: what each command has printed
Printed = list[list[str]]


def line_of(command: str, broker: Broker, directory: Path) -> str:
    """Return a command as the program reads it."""
    for name, value in (
        ("{n}", f"-n {broker.bootstrap}"), ("{server}", broker.bootstrap),
        ("{b}", broker.broker_address), ("{dir}", str(directory)), ("{g}", "adm_stage"),
    ):  # fmt: skip
        command = command.replace(name, value)
    return "\t".join(shlex.split(command)) + "\n"


def masked(command: str, lines: list[str], directory: Path) -> list[str]:
    """Return what a command printed, without what differs from run to run."""
    found: list[str] = []
    for line in lines:
        if re.match(r"\s+(at |\.\.\. )", line):
            continue  # where Java was when it failed
        line = line.replace(str(directory), "DIR")
        if command.startswith("brokerStatus"):
            line = line.partition(":")[0].partition("_/")[0]
        elif command.startswith("statsAll"):
            line = re.sub(r"\s-?\d[\d.]*\b", "", line)
        for pattern, masked_as in MASKS:
            line = re.sub(pattern, masked_as, line)
        if IN_TIME.match(line):
            continue
        if command.startswith(OF_THE_MOMENT):
            line = re.sub(r"\d+(\.\d+)?", "#", line)
        found.append(line.strip())
    return sorted(found) if command.startswith(SHUFFLED) else found


def exported(file: Path) -> Any:
    """Return what was exported, without times and what goes by them."""
    found = json.loads(file.read_text(), parse_float=lambda _: None)
    for name in ("exportTime", "dataVersion", "totalData"):
        found.pop(name, None)
    for broker in found.get("evaluateReport", {}).values():
        broker["runtimeQuota"].pop("oneDayNum")
    return found


def printed(which: str, directory: Path) -> tuple[Printed, dict[str, Any]]:
    """Return what each command printed of a broker, and what was exported."""
    directory.mkdir()
    broker = started(which, directory, SETTINGS)
    there = directory / "there"
    there.mkdir()
    (there / "topics.json").write_text(json.dumps([{**TOPIC, "topicName": "listed"}]))
    (there / "groups.json").write_text(json.dumps([{"groupName": "listed", "retryMaxTimes": 4}]))
    try:
        words = (broker.bootstrap, broker.broker_address)
        program = rocketmq_program(SOURCES, "AdminStage", *words, home=directory / "java")
        typed = "".join(line_of(command, broker, there) for command in COMMANDS)
        said = run_program(program, stdin=typed, directory=there)
    finally:
        broker.stop(kill=True)
    assert "stderr" not in said, said["stderr"]
    found = [
        masked(command, said.get(str(number), ["!! it is missing"]), there)
        for number, command in enumerate(COMMANDS)
    ]
    return found, {name: exported(there / name) for name in EXPORTS}


def printed_of_a_cluster(which: str, directory: Path) -> Printed:
    """Return what each command printed of three brokers, sorted: their ports are drawn."""
    found = {"{b}": "broker-a", "{second}": "broker-b", "{slave}": "broker-a"}
    roles = {"{slave}": {"brokerRole": "SLAVE", "brokerId": 1}}
    there = directory / "there"
    there.mkdir(parents=True)
    with ExitStack() as stack:
        brokers: dict[str, RocketMQPeer | OurRocketMQ] = {}
        for place, name in found.items():
            settings = {**CALM, **SETTINGS, "brokerName": name, **roles.get(place, {})}
            others = brokers["{b}"].bootstrap if brokers else None
            home = directory / place.strip("{}")
            new: RocketMQPeer | OurRocketMQ = (
                OurRocketMQ(home, settings, name_server=others)
                if which == "ours"
                else RocketMQPeer("5", home, settings, name_server=others)
            )
            brokers[place] = new.start()
            stack.callback(new.stop, kill=True)
        first, addresses = brokers["{b}"], {at: one.broker_address for at, one in brokers.items()}
        words = (first.bootstrap, first.broker_address, "alone")
        program = rocketmq_program(SOURCES, "AdminStage", *words, home=directory / "java")
        typed = "".join(line_of(command, first, there) for command in OF_A_CLUSTER)
        said = run_program(program, stdin=named(typed, addresses), directory=there)
    assert "stderr" not in said, said["stderr"]
    names = {address: place.strip("{}") for place, address in addresses.items()}
    return [
        sorted(masked(command, [named(line, names) for line in said[str(number)]], there))
        for number, command in enumerate(OF_A_CLUSTER)
    ]


def named(text: str, names: Mapping[str, str]) -> str:
    """Return a text with other names for some things."""
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def difference(real: list[str], ours: list[str]) -> str:
    """Return the lines that only one of them has printed, or that stand elsewhere."""
    compared = difflib.ndiff(real, ours)
    return "\n".join(line for line in compared if line.startswith(("- ", "+ ")))


def test_mqadmin(tmp_path: Path) -> None:
    """Every command prints the same, and exports the same."""
    with ThreadPoolExecutor(2) as pool:
        (real, exports), (ours, our_exports) = pool.map(
            lambda which: printed(which, tmp_path / which), ("real", "ours")
        )
    assert [one for one, lines in zip(COMMANDS, real, strict=True) if "!! it" in str(lines)] == []
    pairs = zip(COMMANDS, real, ours, strict=True)
    different = [f"{command}\n{difference(*both)}" for command, *both in pairs]
    assert "\n\n".join(one for one in different if not one.endswith("\n")) == ""
    assert our_exports == exports
    assert sum(map(len, real)) > 1000


def test_mqadmin_of_a_cluster(tmp_path: Path) -> None:
    """Commands that are put to all brokers, to a slave or to one of two print the same."""
    with ThreadPoolExecutor(2) as pool:
        real, ours = pool.map(
            lambda which: printed_of_a_cluster(which, tmp_path / which), ("real", "ours")
        )
    pairs = zip(OF_A_CLUSTER, real, ours, strict=True)
    different = [f"{command}\n{difference(*both)}" for command, *both in pairs]
    assert "\n\n".join(one for one in different if not one.endswith("\n")) == ""
    assert sum(map(len, real)) > 500
