"""Kafka's tools in one JVM end and print as each does in a JVM of its own."""

from __future__ import annotations

import pytest

from logstore.tools.dev.kafka_peer import VERSION_4
from tests.interop.conftest import run_alone
from tests.interop.tool_session import ToolSession

pytestmark = pytest.mark.interop

#: one that throws, one that calls for a good end, one for a bad one
RUNS = (
    ("DumpLogSegments", "--files", "nowhere.log"),
    ("TopicCommand", "--version"),
    ("TopicCommand", "--no-such-option"),
)


@pytest.mark.slow
def test_each_ends_as_if_alone() -> None:
    """Exit status, standard output and standard error are those of a process."""
    session = ToolSession(VERSION_4)
    try:
        for name, *args in RUNS:
            alone = run_alone(VERSION_4, name, *args, stdin="")
            done = session.run(name, *args)
            assert (done.status, done.stdout) == (alone.status, alone.stdout), name
            assert done.stderr.splitlines()[:1] == alone.stderr.splitlines()[:1], name
    finally:
        session.close()


def test_a_session_outlives_its_jvm() -> None:
    """A run that takes the JVM down fails alone; the next one has a fresh JVM."""
    session = ToolSession(VERSION_4)
    try:
        assert session.run("TopicCommand", "--version").status == 0
        session.kill()
        with pytest.raises(EOFError, match="has not come to its end"):
            session.run("TopicCommand", "--version")
        assert session.run("TopicCommand", "--version").status == 0
    finally:
        session.close()
