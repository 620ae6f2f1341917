"""A store changes hands between our broker and the real ones, after clean stops and kills."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import attrs
import pytest

from logstore.tools.dev.maven import PeerUnavailable
from logstore.tools.dev.rocketmq_peer import RocketMQPeer
from tests.interop.conftest import missing
from tests.interop.java_programs import rocketmq_program
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_programs import JAVA_SOURCES, create_topic
from tests.interop.rocketmq_sessions import SETTINGS as REAL_SETTINGS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

TOPIC = "handed-over"
QUEUES = 3
MESSAGES = 90
#: Small files, so that there are several of each kind.
SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 150_000,
    "mappedFileSizeConsumeQueue": 500,
    "maxHashSlotNum": 100,
    "maxIndexNum": 200,
}

#: what came before, between and after the two that everything is compared with
OTHER_RELEASES = ("4.5.2", "4.7.1", "4.9.0", "5.0.0", "5.1.4", "5.2.0", "5.3.3", "5.4.0")

#: With these a broker of 5.x that recovers cuts the log at the first record without its CRC.
WITH_CRC: dict[str, object] = {"enabledAppendPropCRC": "true", "forceVerifyPropCRC": "true"}

Broker = OurRocketMQ | RocketMQPeer


def start(broker: Broker) -> None:
    """Start it; end the test as `missing` says where the real one is not to be had."""
    try:
        broker.start()
    except PeerUnavailable as reason:
        missing(str(reason))


def hand_over(broker: Broker, action: str, *words: object, stdin: str = "") -> str:
    """Run HandOver.java; return what it printed."""
    arguments = (broker.bootstrap, action, TOPIC, *map(str, words))
    command = rocketmq_program(JAVA_SOURCES, "HandOver", *arguments)
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@attrs.define
class Written:
    """What was written so far, by whichever broker: the lines that HandOver.java printed."""

    lines: str = ""

    @property
    def count(self) -> int:
        """How many messages there must be."""
        return self.lines.count("\n")

    def begin(self, broker: Broker) -> None:
        """Write the first lot."""
        self.lines = hand_over(broker, "write", 0, MESSAGES)

    def go_on(self, broker: Broker) -> str:
        """Have all looked for and another lot written; return what was said of the search."""
        first = self.count * 10  # numbers that nobody had
        said, _, more = hand_over(broker, "go-on", first, MESSAGES, stdin=self.lines).partition(
            " wrong\n"
        )
        self.lines += more
        return f"{said} wrong"


def real_on(
    version: str, data: Path, directory: Path, broker_port: int, more: dict[str, object]
) -> RocketMQPeer:
    """Return a real broker for a store, not started; message ids hold the port, so it is given."""
    settings = REAL_SETTINGS | SETTINGS | more
    return RocketMQPeer(version, directory, settings, data, broker_port=broker_port)


def last_shutdown(peer: RocketMQPeer) -> str:
    """Return what the real broker takes the last stop for, "normally" or "abnormally"."""
    found = re.findall(r"last shutdown (\w+)", peer.log.read_text(errors="replace"))
    assert found, "the log tells of the load"
    return str(found[-1])


@pytest.mark.parametrize(
    ("version", "is_begun_by_us"),
    [
        pytest.param("5", True, marks=pytest.mark.slow),
        ("4", False),
        pytest.param("5", False, marks=pytest.mark.slow),
        pytest.param("4", True, marks=pytest.mark.slow),
        *(pytest.param(one, False, marks=pytest.mark.slow) for one in OTHER_RELEASES),
    ],
)
def test_a_store_changes_hands(tmp_path: Path, version: str, is_begun_by_us: bool) -> None:
    """
    Whoever starts on it serves every message by pull, id, unique id and key, and takes more.

    Two turns end with a clean stop, two with a kill, so that each of the two makes goes on after
    either end of the other one. One pair of them has records that end with a CRC.
    """
    data = tmp_path / "store"
    more = WITH_CRC if version == "5" and is_begun_by_us else {}
    ours = OurRocketMQ(tmp_path / "ours", SETTINGS | more, data)
    real = real_on(version, data, tmp_path / "real", ours.broker_port, more)
    turns: list[Broker] = [ours, real, ours, real, ours]
    if not is_begun_by_us:
        turns = [real, ours, real, ours, real]
    written = Written()
    for turn, broker in enumerate(turns):
        start(broker)
        try:
            if turn == 0:
                create_topic(broker, TOPIC, QUEUES)
                written.begin(broker)
                assert written.count >= MESSAGES
                continue
            if broker is real:
                assert last_shutdown(real) == ("abnormally" if turn > 2 else "normally")
            count = written.count
            said = written.go_on(broker)
            assert said == f"{count} pulled, {count} looked for, 0 wrong"
            assert written.count == count * (turn + 1) // turn
        finally:
            broker.stop(kill=turn >= 2)
