"""Programs of all four foreign clients print the same of our broker as of the real one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.interop.rocketmq_programs import AdminCommand, admin_commands
from tests.interop.rocketmq_sessions import Session, java_alone, java_versions, session

__all__ = ["java_versions", "session"]

pytestmark = [pytest.mark.interop, pytest.mark.either_layout, pytest.mark.timeout(600)]

JAVA = (
    "retry", "transactions", "delay", "rebalance", "orderly", "push", "tags", "sql", "broadcast",
    "produce", "batch", "refused", "pull", "lite", "waiting", "times", "query", "topics", "groups",
    "connections", "reset", "config",
)  # fmt: skip
CPP = ("produce", "push", "push by tag", "push in order", "pull")
ALI_ONS = ("produce", "consume *", "consume odd", "consume * everywhere")


class Nowhere:
    """A broker whose addresses do not matter: only the names of the commands are wanted."""

    bootstrap = broker_address = ""


ADMIN: list[AdminCommand] = admin_commands(Nowhere())


@pytest.fixture(params=["ours", pytest.param("foreign", marks=pytest.mark.slow)])
def broker(request: pytest.FixtureRequest) -> str:
    """Whose transcript must be like the real one's: ours, or ours over Kafka's layout."""
    found: str = request.param
    return found


def printed(session: Session, broker: str, program: str, section: str) -> list[str]:
    """Return what a program printed in a section, for one that failed what it left behind."""
    sections = session(broker)[program]
    return sections.get(section, ["!! the section is missing", *sections.get("stderr", [])])


def complaints(lines: list[str]) -> list[str]:
    """Return what the program itself says went wrong."""
    return [line for line in lines if line.startswith("!!")]


@pytest.mark.parametrize(
    "section",
    [pytest.param(JAVA[0], marks=pytest.mark.slow), *JAVA[1:]],  # it takes longest
)
@pytest.mark.parametrize("version", ["5", pytest.param("4", marks=pytest.mark.slow)])
def test_java(session: Session, broker: str, version: str, section: str, tmp_path: Path) -> None:
    """
    A scenario of the official Java client, 5.5.0 and 4.9.8.

    On a busy machine the client (a send that runs out of time is sent in another way) and the real
    broker (which looks at waiting pulls every five seconds) show other things now and then: what
    differs is run once more on fresh brokers, with nothing beside it.
    """
    real = printed(session, "real", f"java-{version}", section)
    ours = printed(session, broker, f"java-{version}", section)
    if complaints(real) or ours != real:
        real = java_alone("real", version, section, tmp_path / "real")
        ours = java_alone(broker, version, section, tmp_path / "ours")
    assert complaints(real) == []
    assert len(real) >= 2, "a scenario that prints next to nothing would be equal everywhere"
    assert ours == real


@pytest.mark.parametrize("section", CPP)
def test_cpp(session: Session, broker: str, section: str) -> None:
    """The C++ client that PyPI's `rocketmq` brings along."""
    real = printed(session, "real", "cpp", section)
    assert complaints(real) == []
    assert printed(session, broker, "cpp", section) == real


@pytest.mark.parametrize("section", ALI_ONS)
def test_ali_ons(session: Session, broker: str, section: str) -> None:
    """Npm's ali-ons, a client in JavaScript."""
    real = printed(session, "real", "ali-ons", section)
    assert complaints(real) == []
    assert printed(session, broker, "ali-ons", section) == real


@pytest.mark.parametrize("section", [command.words[0] for command in ADMIN])
def test_mqadmin(session: Session, broker: str, section: str) -> None:
    """A command of mqadmin 5.5.0, as far as its answer has no figures of the moment."""
    real = printed(session, "real", "mqadmin", section)
    assert complaints(real) == []
    assert printed(session, broker, "mqadmin", section) == real


def test_the_programs_see_much(session: Session, java_versions: Sequence[str]) -> None:
    """A program that prints next to nothing would be equal everywhere."""
    real = session("real")
    assert {len(real[f"java-{version}"]) for version in java_versions} == {len(JAVA)}
    assert sum(len(lines) for lines in real["java-5"].values()) > 200
    assert sum(len(lines) for lines in real["mqadmin"].values()) > 60
    bodies = "\n".join(real["java-5"]["produce"])
    assert re.search(r"produce_t/1@1 100000 bytes crc=5411957d .* sysFlag=300", bodies)
