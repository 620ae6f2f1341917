"""Programs of all four foreign clients print the same of our broker as of the real one."""

from __future__ import annotations

import re

import pytest

from tests.interop.rocketmq_programs import AdminCommand, admin_commands
from tests.interop.rocketmq_sessions import Session, session

__all__ = ["session"]

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


def compare(session: Session, broker: str, program: str, section: str) -> None:
    """Check that the real broker did as the program wants, and ours the same."""
    real = session("real")[program]
    assert section in real, real.get("stderr")
    assert [line for line in real[section] if line.startswith("!!")] == []
    ours = session(broker)[program]
    assert section in ours, ours.get("stderr")
    assert ours[section] == real[section]


@pytest.mark.parametrize("section", JAVA)
@pytest.mark.parametrize("version", ["5", "4"])
def test_java(session: Session, broker: str, version: str, section: str) -> None:
    """A scenario of the official Java client, 5.5.0 and 4.9.8."""
    compare(session, broker, f"java-{version}", section)


@pytest.mark.parametrize("section", CPP)
def test_cpp(session: Session, broker: str, section: str) -> None:
    """The C++ client that PyPI's `rocketmq` brings along."""
    compare(session, broker, "cpp", section)


@pytest.mark.parametrize("section", ALI_ONS)
def test_ali_ons(session: Session, broker: str, section: str) -> None:
    """Npm's ali-ons, a client in JavaScript."""
    compare(session, broker, "ali-ons", section)


@pytest.mark.parametrize("section", [command.words[0] for command in ADMIN])
def test_mqadmin(session: Session, broker: str, section: str) -> None:
    """A command of mqadmin 5.5.0, as far as its answer has no figures of the moment."""
    compare(session, broker, "mqadmin", section)


def test_the_programs_see_much(session: Session) -> None:
    """A program that prints next to nothing would be equal everywhere."""
    real = session("real")
    assert [len(real[program]) for program in ("java-5", "java-4")] == [len(JAVA)] * 2
    assert all(len(real["java-5"][section]) >= 2 for section in JAVA)
    assert sum(len(lines) for lines in real["java-5"].values()) > 200
    assert sum(len(lines) for lines in real["mqadmin"].values()) > 60
    bodies = "\n".join(real["java-5"]["produce"])
    assert re.search(r"produce_t/1@1 100000 bytes crc=5411957d .* sysFlag=300", bodies)
