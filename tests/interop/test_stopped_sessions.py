"""A Spark session that is stopped while it starts leaves no Java behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.eventually import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]
#: says that it is a Java, what Spark's launcher is to run, and then nothing any more
JAVA = """#!/bin/sh
case "$*" in
-version) echo 'openjdk version "17.0.1"' >&2 ;;
*launcher.Main*) printf '\\0\\n%s\\0started\\0' "$0" ;;
*) echo $$ > "{told}.new"; mv "{told}.new" "{told}"; exec sleep 1000 ;;
esac
"""
PROGRAM = "from logstore.compat.spark import local_session; local_session()"


def is_running(process_id: int) -> bool:
    """Tell whether there is such a process."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_ends_the_java_that_starts(tmp_path: Path) -> None:
    """It hears of no Ctrl-C itself, and nobody would end it later."""
    told = tmp_path / "java.pid"
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text(JAVA.format(told=told))
    java.chmod(0o755)
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment) as program:
        eventually(told.exists, what="Java")
        process_id = int(told.read_text())
        assert is_running(process_id)
        program.send_signal(signal.SIGINT)
        assert program.wait(60) != 0
    eventually(lambda: not is_running(process_id), what="the end of Java")
