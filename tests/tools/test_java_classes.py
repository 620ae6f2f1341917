"""Java programs are compiled once, and class paths asked for once, whoever asks at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logstore.tools.dev import kafka_peer
from logstore.tools.dev.java_classes import compiled
from logstore.tools.dev.maven import PeerToolError, PeerUnavailable, class_path

JAVAC = """\
#!/bin/sh
echo "$@" >> "$CALLS"
while [ "$1" != -d ]; do shift; done
touch "$2/Program.class"
"""
MAVEN = """\
#!/bin/sh
echo "$@" >> "$CALLS"
for word in "$@"; do last="$word"; done
printf %s "$JAR" > "${last#-Dmdep.outputFile=}"
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to which `javac` and `mvn`, which are not real, write how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("javac", JAVAC), ("mvn", MAVEN)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("JAR", __file__)
    return tmp_path / "calls"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A program."""
    source = tmp_path / "Program.java"
    source.write_text("class Program {}")
    return source


def test_whoever_asks_while_it_is_compiled_waits(tmp_path: Path, source: Path, calls: Path) -> None:
    """Four ask at once, and it is compiled once, into the directory that all are told."""

    def ask(_: int) -> Path:
        return compiled("Kafka", [source], "a.jar:b.jar", tmp_path / "cache")

    with ThreadPoolExecutor(4) as pool:
        (directory,) = set(pool.map(ask, range(4)))
    assert [path.name for path in directory.iterdir()] == ["Program.class"]
    (call,) = calls.read_text().splitlines()
    assert call.endswith(f"-cp a.jar:b.jar {source}")


def test_another_program_has_another_directory(tmp_path: Path, source: Path, calls: Path) -> None:
    """A changed source is compiled anew; what an interrupted run left is in nobody's way."""
    first = compiled("Kafka", [source], "a.jar", tmp_path)
    source.write_text("class Program { int changed; }")
    second = compiled("Kafka", [source], "a.jar", tmp_path)
    assert second != first
    second.rename(second.with_name(f"{second.name}.new"))
    assert compiled("Kafka", [source], "a.jar", tmp_path) == second
    assert len(calls.read_text().splitlines()) == 3


def test_what_the_compiler_said_is_told(
    tmp_path: Path, source: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that is none leaves no directory; without a compiler one line says so."""
    (tmp_path / "bin" / "javac").write_text("#!/bin/sh\necho no program >&2\nexit 1\n")
    for _ in range(2):
        with pytest.raises(PeerToolError, match="javac with Kafka ended badly:\nno program"):
            compiled("Kafka", [source], "a.jar", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerUnavailable, match="Kafka: no `javac` on the PATH"):
        compiled("Kafka", [source], "a.jar", tmp_path)
    assert not calls.exists()


def test_whoever_asks_while_maven_is_asked_waits(tmp_path: Path, calls: Path) -> None:
    """Four want the class path of jars that are not on disk, and Maven is asked once."""
    pom = tmp_path / "pom.xml"
    pom.write_text("<project/>")

    def ask(_: int) -> str:
        return class_path("Kafka", pom, ["-P", "x"], tmp_path / "cache")

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, range(4))) == {__file__}
    assert len(calls.read_text().splitlines()) == 1


def test_a_program_stands_behind_the_jars(
    tmp_path: Path, source: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive of classes needs the jars to come first; the program is named as it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("shutil.which", str)
    directory = kafka_peer.compiled("9.9.9", [source], more="more.jar")
    command = kafka_peer.java("9.9.9", "Program", "argument", behind=directory)
    assert command[-4:] == ["-cp", f"{__file__}:{directory}", "Program", "argument"]
    assert f"-cp {__file__}:more.jar {source}" in calls.read_text()
