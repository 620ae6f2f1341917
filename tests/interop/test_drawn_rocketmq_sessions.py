"""Sessions drawn from seeds: whatever is asked of RocketMQ, a real one and ours answer the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from logstore.tools.dev.rocketmq_peer import RocketMQPeer
from tests.interop.drawn_rocketmq.session import SETTINGS, run
from tests.interop.eventually import eventually
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_sessions import start_real
from tests.interop.stored_messages import differences

pytestmark = pytest.mark.interop

Address = tuple[str, str]
Brokers = tuple[OurRocketMQ, RocketMQPeer]
SECONDS_MAX = 20
#: when half messages are given up each broker decides by its own clock
BY_THE_CLOCK = frozenset({"TRANS_CHECK_MAX_TIME_TOPIC"})
#: what is asked about, and by which seeds
SESSIONS = (
    ("settings", (300,)),
    ("names", (22527,)),
    ("topics", (300,)),
    ("records", (6007,)),
    ("groups", (6006, 22104)),
    ("pops", (6005,)),
    ("lites", (28027,)),
    ("transactions", (300,)),
    ("access", (6002,)),
    ("frames", (300,)),
    ("brokers", (27141,)),
    ("timers", (27140,)),
    ("statics", (27161,)),
    ("marks", (28200,)),
    ("flags", (28362,)),
    ("callers", (31105,)),
    ("moments", (31005,)),
    ("properties", (31520,)),
)
#: those for which CI has no time
MORE_SESSIONS = (
    ("settings", (301,)),
    ("names", (200, 305, 6001)),
    ("topics", (301,)),
    ("records", (300, 303, 6004)),
    ("groups", (303, 304, 6003, 20408)),
    ("pops", (300, 302)),
    ("lites", (28002, 28038)),
    ("transactions", (303,)),
    ("access", (300,)),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Name server and broker of ours, and those of a real release 5.5.0, all new."""
    directory = tmp_path_factory.mktemp("drawn-rocketmq")
    with OurRocketMQ(directory / "ours", SETTINGS) as ours:
        real = start_real("5", directory / "real", SETTINGS, is_busy=True)
        try:
            yield ours, real
        finally:
            real.stop(kill=True)


@pytest.mark.parametrize(
    ("area", "seed"),
    [
        pytest.param(area, seed, id=f"{area}-{seed}", marks=marks)
        for sessions, marks in ((SESSIONS, ()), (MORE_SESSIONS, pytest.mark.slow))
        for area, seeds in sessions
        for seed in seeds
    ],
)
def test_a_drawn_session_is_answered_alike(area: str, seed: int, both: Brokers) -> None:
    """Field by field, but for what each broker makes up by itself."""
    ours, real = ((one.bootstrap, one.broker_address) for one in both)
    twin = run(ours, real, seed, (area,), prefix=area)
    assert len(twin.steps) >= 80
    assert "\n".join(map(str, twin.differences)) == ""


def test_both_have_stored_the_same(both: Brokers) -> None:
    """After all these sessions, byte by byte but for times, ids and addresses."""
    ours, real = both
    found: list[str] = []

    def agree() -> bool:
        found[:] = differences(ours.data, real.data, BY_THE_CLOCK)
        return not found

    with suppress(AssertionError):  # what is due later comes by each one's clock
        eventually(agree, SECONDS_MAX)
    assert "\n".join(found) == ""
