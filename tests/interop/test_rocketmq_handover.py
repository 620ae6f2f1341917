"""A store changes hands between our broker and the real ones, after clean stops and kills."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import attrs
import pytest

from logstore.tools.dev.rocketmq_jars import compiled, java
from logstore.tools.dev.rocketmq_peer import RocketMQPeer
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_programs import JAVA_SOURCES, create_topic
from tests.interop.rocketmq_sessions import start_real

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

TOPIC = "handed-over"
QUEUES = 3
MESSAGES = 240
#: Small files, so that there are several of each kind.
SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 300_000,
    "mappedFileSizeConsumeQueue": 1000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}

Broker = OurRocketMQ | RocketMQPeer


def hand_over(broker: Broker, action: str, *words: object, stdin: str = "") -> str:
    """Run HandOver.java; return what it printed."""
    command = java(
        "5",
        "HandOver",
        *(broker.bootstrap, action, TOPIC, *map(str, words)),
        classes=compiled("5", JAVA_SOURCES),
    )
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@attrs.define
class Written:
    """What was written so far, by whichever broker: the lines that HandOver.java printed."""

    lines: str = ""

    def more(self, broker: Broker) -> None:
        """Write another lot, with numbers that nobody had."""
        before = self.lines.count("\n")
        self.lines += hand_over(broker, "write", before * 10, MESSAGES)
        assert self.lines.count("\n") >= before + MESSAGES

    def check(self, broker: Broker) -> None:
        """Check that each message is found by pull, id, unique id and key, and nothing else is."""
        count = self.lines.count("\n")
        said = hand_over(broker, "check", stdin=self.lines)
        assert said == f"{count} pulled, {count} looked for, 0 wrong\n"


def ours_on(data: Path, directory: Path, broker_port: int | None = None) -> OurRocketMQ:
    """Return our broker on a store, not started; message ids hold the port, so that it is kept."""
    return OurRocketMQ(directory, SETTINGS, data, broker_port)


def real_on(
    version: str, data: Path, directory: Path, broker_port: int | None = None
) -> RocketMQPeer:
    """Return a real broker, started on a store, with that port."""
    return start_real(version, directory, SETTINGS, data, broker_port)


def last_shutdown(peer: RocketMQPeer) -> str:
    """Return what the real broker takes the last stop for, "normally" or "abnormally"."""
    found = re.findall(r"last shutdown (\w+)", peer.log.read_text(errors="replace"))
    assert found, "the log tells of the load"
    return str(found[-1])


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("version", ["5", "4"])
def test_the_real_broker_goes_on_with_ours(tmp_path: Path, version: str, is_killed: bool) -> None:
    """It serves every message that we took, takes more, and we serve those after its kill."""
    data = tmp_path / "store"
    written = Written()
    ours = ours_on(data, tmp_path / "ours").start()
    create_topic(ours, TOPIC, QUEUES)
    written.more(ours)
    written.check(ours)
    ours.stop(kill=is_killed)
    real = real_on(version, data, tmp_path / "real", ours.broker_port)
    try:
        assert last_shutdown(real) == ("abnormally" if is_killed else "normally")
        written.check(real)
        written.more(real)
        written.check(real)
    finally:
        real.stop(kill=True)
    with ours_on(data, tmp_path / "again", ours.broker_port) as again:
        written.check(again)
        written.more(again)
        written.check(again)


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("version", ["5", "4"])
def test_ours_goes_on_with_the_real_broker(tmp_path: Path, version: str, is_killed: bool) -> None:
    """We serve every message that the real one took, and take more, over a restart too."""
    data = tmp_path / "store"
    written = Written()
    real = real_on(version, data, tmp_path / "real")
    try:
        create_topic(real, TOPIC, QUEUES)
        written.more(real)
        written.check(real)
    finally:
        real.stop(kill=is_killed)
    ours = ours_on(data, tmp_path / "ours", real.broker_port).start()
    written.check(ours)
    written.more(ours)
    written.check(ours)
    ours.stop(kill=is_killed)
    with ours_on(data, tmp_path / "again", real.broker_port) as again:
        written.check(again)
