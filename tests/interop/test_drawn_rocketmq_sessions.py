"""Sessions drawn from seeds: whatever is asked of RocketMQ, a real one and ours answer the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.drawn_rocketmq.session import SETTINGS, run
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_sessions import start_real

pytestmark = pytest.mark.interop

Address = tuple[str, str]
#: what is asked about, and by which seeds
SESSIONS = (
    ("settings", (300, 301)),
    ("names", (305, 200, 6001)),
    ("topics", (300, 301)),
    ("records", (300, 303, 6004, 6007)),
    ("groups", (303, 304, 6003, 6006)),
    ("pops", (300, 302, 6005)),
    ("transactions", (300, 303)),
    ("access", (300, 6002)),
    ("frames", (300,)),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Address, Address]]:
    """Name server and broker of ours, and those of a real release 5.5.0, all new."""
    directory = tmp_path_factory.mktemp("drawn-rocketmq")
    with OurRocketMQ(directory / "ours", SETTINGS) as ours:
        real = start_real("5", directory / "real", SETTINGS)
        try:
            yield (
                (ours.bootstrap, ours.broker_address),
                (real.bootstrap, real.broker_address),
            )
        finally:
            real.stop(kill=True)


@pytest.mark.parametrize(
    ("area", "seed"),
    [pytest.param(area, seed, id=f"{area}-{seed}") for area, seeds in SESSIONS for seed in seeds],
)
def test_a_drawn_session_is_answered_alike(
    area: str, seed: int, both: tuple[Address, Address]
) -> None:
    """Field by field, but for what each broker makes up by itself."""
    twin = run(*both, seed, (area,), prefix=area)
    assert len(twin.steps) >= 80
    assert "\n".join(map(str, twin.differences)) == ""
