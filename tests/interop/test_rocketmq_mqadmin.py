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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.interop.java_programs import rocketmq_program
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
COMMANDS = [
    line
    for line in (Path(__file__).parent / "mqadmin_commands.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
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
