"""The foreign RocketMQ clients: programs of their own that print what they saw, in sections."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from logstore.tools.dev.remoting_request import ask
from tests.interop.foreign_packages import node_modules, python_package
from tests.interop.java_programs import rocketmq_program

HERE = Path(__file__).parent
JAVA_SOURCES = sorted((HERE / "rocketmq_java").glob("*.java"))
CPP_CLIENT = "rocketmq==0.4.4"
ALI_ONS = "ali-ons@3.12.0"
PROGRAM_SECONDS_MAX = 240
UPDATE_AND_CREATE_TOPIC = 17

Sections = dict[str, list[str]]


class Broker(Protocol):
    """What a program needs to know of a broker, the real one or ours."""

    @property
    def bootstrap(self) -> str:
        """The name server's address."""
        ...

    @property
    def broker_address(self) -> str:
        """The broker's address."""
        ...


def sections_of(text: str) -> Sections:
    """Return the lines behind each ``== NAME``, without empty ones."""
    found: Sections = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("== "):
            lines = found.setdefault(line.removeprefix("== "), [])
        elif line.strip():
            lines.append(line.rstrip())
    return found


def run_program(
    command: list[str],
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    directory: Path | None = None,
) -> Sections:
    """
    Run it to its end, in `directory` if one is given.

    What it wrote to stderr is the section "stderr" where it failed.
    """
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        input=stdin,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS_MAX,
        check=False,
    )
    found = sections_of(done.stdout)
    if done.returncode:
        found["stderr"] = [f"!! exit status {done.returncode}", *done.stderr.splitlines()[-40:]]
    return found


def create_topic(broker: Broker, topic: str, queue_count: int) -> None:
    """Create a topic by the request that mqadmin sends."""
    host, _, port = broker.broker_address.rpartition(":")
    fields = {
        "topic": topic, "defaultTopic": "TBW102", "readQueueNums": queue_count,
        "writeQueueNums": queue_count, "perm": 6, "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0, "order": "false",
    }  # fmt: skip
    answer = ask((host, int(port)), UPDATE_AND_CREATE_TOPIC, fields, timeout_seconds=20)
    assert answer.code == 0, answer


def java_client(broker: Broker, version: str, home: Path, *names: str) -> Sections:
    """Run the scenarios (all, where none is named) with the Java client of that release."""
    words = (broker.bootstrap, broker.broker_address, f"c{version}", *names)
    home = home / f"java-{version}"
    command = rocketmq_program(JAVA_SOURCES, "Scenarios", *words, version=version, home=home)
    return run_program(command)


def cpp_environment() -> dict[str, str]:
    """Return an environment in which the C++ client is there; fetched from PyPI once per user."""
    return {**os.environ, "PYTHONPATH": str(python_package(CPP_CLIENT, "--no-deps"))}


def cpp_client(broker: Broker) -> Sections:
    """Run the program of the C++ client."""
    environment = cpp_environment()
    create_topic(broker, "cpp_t", 1)
    program = str(HERE / "rocketmq_cpp_client.py")
    return run_program([sys.executable, program, broker.bootstrap, "cpp_t"], environment)


def ali_ons(broker: Broker) -> Sections:
    """Run the program of npm's ali-ons, which is installed once per user."""
    modules = node_modules(ALI_ONS, "urllib@2")
    create_topic(broker, "ali_t", 2)
    return run_program(
        ["node", str(HERE / "ali_ons_round_trip.js"), broker.bootstrap, "ali_t"],
        {"NODE_PATH": str(modules)},
    )


@attrs.frozen
class AdminCommand:
    """
    One command line of mqadmin; `mask` removes what differs from run to run.

    Of the lines it prints those that contain `about` are kept: others may be at work beside it.
    """

    words: tuple[str, ...]
    mask: Callable[[str], str] = str
    about: str = ""


def _figures(line: str) -> str:
    """Return the line with every number, and the blanks around it, the same."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "#", line)).strip()


def admin_commands(broker: Broker) -> list[AdminCommand]:
    """Return what mqadmin is asked to do, in this order: each makes what the next ones look at."""
    name_server, address = ("-n", broker.bootstrap), ("-b", broker.broker_address)
    topic, group = ("-t", "admin_t"), ("-g", "admin_g")
    of = AdminCommand
    return [
        of(("updateTopic", *name_server, *address, *topic, "-r", "2", "-w", "2")),
        of(("topicRoute", *name_server, *topic)),
        of(("topicClusterList", *name_server, *topic)),
        of(("sendMessage", *name_server, *topic, "-p", "hello", "-k", "adminkey", "-c", "tagA",
            "-b", "broker-a", "-i", "1"), _figures),
        of(("topicStatus", *name_server, *topic), _figures),
        of(("queryMsgByKey", *name_server, *topic, "-k", "adminkey"), _figures),
        of(("queryMsgByOffset", *name_server, *topic, "-b", "broker-a", "-i", "1", "-o", "0"),
           _figures),
        of(("printMsgByQueue", *name_server, *topic, "-a", "broker-a", "-i", "1", "-p", "true"),
           _figures),
        of(("consumeMessage", *name_server, *topic, "-b", "broker-a", "-i", "1", "-o", "0",
            "-c", "1"), _figures),
        of(("updateSubGroup", *name_server, *address, *group, "-r", "3")),
        of(("resetOffsetByTime", *name_server, *topic, *group, "-s", "-1"), _figures),
        of(("consumerProgress", *name_server, *group), _figures),
        of(("brokerConsumeStats", *name_server, *address, "-l", "0"), _figures, "admin_"),
        of(("updateTopicPerm", *name_server, *topic, *address, "-p", "4")),
        of(("wipeWritePerm", *name_server, "-b", "broker-a"), _figures),
        of(("addWritePerm", *name_server, "-b", "broker-a"), _figures),
        of(("updateKvConfig", *name_server, "-s", "space", "-k", "one", "-v", "1")),
        of(("deleteKvConfig", *name_server, "-s", "space", "-k", "one")),
        of(("clusterList", *name_server), lambda line: _figures(line).replace("*", "")),
        of(("cleanExpiredCQ", *name_server, *address)),
        of(("cleanUnusedTopic", *name_server, *address)),
        of(("allocateMQ", *name_server, *topic, "-i", "a,b")),
        of(("updateBrokerConfig", *name_server, *address, "-k", "maxErrorRateOfBloomFilter",
            "-v", "21")),
        of(("updateColdDataFlowCtrGroupConfig", *name_server, *address, *group, "-v", "1000")),
        of(("getColdDataFlowCtrInfo", *name_server, *address)),
        of(("removeColdDataFlowCtrGroupConfig", *name_server, *address, *group)),
        of(("setCommitLogReadAheadMode", *name_server, *address, "-m", "0")),
        of(("switchTimerEngine", *name_server, *address, "-e", "F")),
        of(("getBrokerEpoch", *name_server, "-b", "broker-a"), about="DESC"),
        of(("resetMasterFlushOffset", *name_server, *address, "-o", "0")),
        of(("exportPopRecord", *name_server, *address)),
        of(("updateOrderConf", *name_server, *topic, "-m", "put", "-v", "broker-a:2")),
        of(("getConsumerConfig", *name_server, *group)),
        of(("setConsumeMode", *name_server, *address, *topic, *group, "-m", "POP", "-q", "2")),
        of(("haStatus", *name_server, *address), _figures),
        of(("deleteSubGroup", *name_server, *address, *group)),
        of(("deleteTopic", *name_server, "-c", "DefaultCluster", *topic)),
    ]  # fmt: skip


def admin_session(version: str, home: Path, *commands: Sequence[str]) -> Sections:
    """Run commands of mqadmin, one after the other in one JVM; return what each has printed."""
    home = home / f"mqadmin-{version}"
    command = rocketmq_program(JAVA_SOURCES, "AdminSession", version=version, home=home)
    return run_program(command, stdin="".join("\t".join(words) + "\n" for words in commands))


def mqadmin(broker: Broker, version: str, home: Path) -> Sections:
    """Run the commands; addresses are replaced by who has them."""
    commands = admin_commands(broker)
    found = admin_session(version, home, *(command.words for command in commands))
    for command in commands:
        lines = found.get(command.words[0], [f"!! {command.about} is not there"])
        found[command.words[0]] = [
            command.mask(_without_addresses(line, broker))
            for line in lines
            if command.about in line
        ]
    return found


def _without_addresses(line: str, broker: Broker) -> str:
    line = line.replace(broker.bootstrap, "NAME_SERVER").replace(broker.broker_address, "BROKER")
    line = re.sub(r"\d+\.\d+\.\d+\.\d+(:\d+)?", "ADDRESS", line)
    return re.sub(r"\b[0-9A-F]{32,56}\b", "ID", line)
