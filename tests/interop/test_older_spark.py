"""The oldest Spark that is taken, and the one between: whole sessions of either."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.tools.bench.spark_peer import spark_packages
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import missing
from tests.interop.spark_tour import PLAIN, QUERIES, toured

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0"])
def test_a_session_does_the_same(version: str, tmp_path: Path) -> None:
    """Reads, asks, writes, follows and converts, though Spark has less to offer."""
    try:
        packages = spark_packages(version)
    except PeerUnavailable as error:
        missing(f"Spark {version}: {error}")
    done = toured("local[2]", tmp_path, packages)
    assert done["used"] == QUERIES
    assert dict(done["asked"]["kafka"]) == dict(done["asked"]["partitions"])
    assert done["copied"] == [["copies", PLAIN]]
    assert done["converted"] > PLAIN
    assert "plain-0/00000000000000000000.log" in done["refused"][1]
