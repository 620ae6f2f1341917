"""The class path of a pom is asked for once, and again for another pom."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore.tools.dev.maven import class_path

#: answers with a jar named after how often it was asked, and says so in `asked`
MAVEN = """#!/bin/sh
for argument; do case $argument in -Dmdep.outputFile=*) output=${argument#*=} ;; esac; done
echo once >> "$ASKED"
jar=$ASKED.$(wc -l < "$ASKED" | tr -d ' ').jar
: > "$jar"
printf %s "$jar" > "$output"
"""


def test_maven_is_asked_for_every_pom_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered holds for the same pom, while its jars are there."""
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text(MAVEN)
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{maven.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    pom, cache = tmp_path / "suite.xml", tmp_path / "cache"
    cache.mkdir()

    def found() -> str:
        return Path(class_path("Thing 1", pom, [], cache)).name

    pom.write_text("<project/>")
    assert [found(), found()] == ["asked.1.jar", "asked.1.jar"]
    pom.write_text("<project><dependencies/></project>")
    assert [found(), found()] == ["asked.2.jar", "asked.2.jar"]
    (tmp_path / "asked.2.jar").unlink()
    assert found() == "asked.3.jar"
