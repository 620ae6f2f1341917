"""franz-go's own tests of its client, as it ships them, against ours."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.interop.foreign_packages import go_program
from tests.interop.our_broker import OurBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).with_name("franz_go")
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
#: Of each test; they want half a million by themselves, which takes ten minutes.
RECORDS = 50_000
SECONDS_MAX = 800
#: It reads the client's source, which is not here, and asks no broker anything.
PASSED_OVER = "^TestOptValuesCoversEveryOption$"


@pytest.mark.parametrize("nodes", [1, 3])
def test_franz_gos_own_tests(nodes: int, tmp_path: Path) -> None:
    """Chains of groups of either protocol, of share groups and of transactions lose no record."""
    tests = go_program(PROGRAM, tmp_path, PACKAGE)
    arguments = ("--nodes", str(nodes)) if nodes > 1 else ()
    with OurBroker(tmp_path / "ours", {"num.partitions": 4}, arguments=arguments) as ours:
        given = {"SEEDS": ours.bootstrap, "TEST_RF": nodes, "TEST_RECORDS": RECORDS}
        done = subprocess.run(
            [str(tests), "-test.v", f"-test.timeout={SECONDS_MAX}s", f"-test.skip={PASSED_OVER}"],
            env=os.environ | {f"KGO_{key}": str(value) for key, value in given.items()},
            cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
        )  # fmt: skip
    failed = [line for line in done.stdout.splitlines() if "--- FAIL" in line]
    assert (failed, done.returncode) == ([], 0), done.stdout[-5000:]
    assert done.stdout.count("--- PASS: TestGroupETL") > 0
    assert done.stdout.count("--- PASS: TestTxnEtl") > 0
