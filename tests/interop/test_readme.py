"""The README promises what runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import confluent_kafka
import pytest

from logstore.compat import TestBroker
from tests.interop.clients import settings
from tests.interop.test_transactions import values

pytestmark = pytest.mark.interop

README = Path(__file__).resolve().parents[2] / "README.md"


def python_examples(section: str) -> list[str]:
    """Return each piece of Python under that heading."""
    under = README.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", under, re.DOTALL)


def python_example(section: str) -> str:
    """Return the Python under that heading."""
    return "\n\n".join(python_examples(section))


@pytest.mark.parametrize(
    ("section", "count"), [("A broker in your tests", 3), ("Users and TLS", 2)]
)
def test_the_examples_of_tests_pass(tmp_path: Path, section: str, count: int) -> None:
    """The first thing that a reader copies is a pytest file, and each is green by itself."""
    for number, example in enumerate(python_examples(section)):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    assert f"{count} passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_the_example_of_dataframes_runs(tmp_path: Path) -> None:
    """Line by line, on stores of these names: SQL, columns, a copy, and a stream into a third."""
    with TestBroker(str(tmp_path / "kafka-data")) as broker:
        producer = confluent_kafka.Producer(settings(broker.bootstrap))
        for number in range(3):
            producer.produce("orders", key=b"%d" % number, value=b"apples")
        assert producer.flush(30) == 0
    with TestBroker(str(tmp_path / "store"), layout="rocketmq"):
        pass
    file = tmp_path / "example.py"
    finish = "spark.streams.active[0].processAllAvailable()\nspark.stop()\n"
    file.write_text(python_example("DataFrames and conversion") + finish)
    done = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\|\s+0\|\s+3\|", done.stdout), done.stdout
    for directory, topic in (("kafka-copy", "copies"), ("follower", "orders")):
        with TestBroker(str(tmp_path / directory)) as broker:
            assert values(broker.bootstrap, topic) == ["apples"] * 3


def test_the_commands_exist() -> None:
    """Every `logstore` and `./dev` command that the README names answers to --help."""
    text = README.read_text()
    commands = set(re.findall(r"logstore (serve|fault|ls|dump|query|verify|convert|bench)\b", text))
    assert commands >= {"serve", "fault", "ls", "dump", "query"}
    for command in commands:
        shown = [sys.executable, "-m", "logstore.tools.cli", command, "--help"]
        done = subprocess.run(shown, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    named = set(re.findall(r"\./dev (\w+)", text))
    usage = subprocess.run(
        [str(README.parent / "dev"), "help"], capture_output=True, text=True, check=True
    ).stdout
    assert {command for command in named if f"./dev {command}" not in usage} == set()
