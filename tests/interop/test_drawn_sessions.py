"""Sessions drawn from seeds: whatever is asked, a real broker and ours answer the same."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interop.conftest import QUICK_HEARTBEATS, SETTINGS, start_real
from tests.interop.drawn.session import AT_ONCE, AUTHORIZER, run
from tests.interop.our_broker import OurBroker

pytestmark = pytest.mark.interop

Both = tuple[str, str]
#: what is asked about, and by which seeds
SESSIONS = (
    (("topics", "records"), (3, 6, 8)),
    (("groups",), (1, 2, 6)),
    (("transactions",), (1, 3, 7)),
    (("configs",), (1, 2, 4)),
    (("cluster",), (0, 1)),
)


@contextmanager
def both_brokers(directory: Path, settings: dict[str, object]) -> Generator[Both]:
    """Yield the addresses of our broker and of a real one, both new."""
    wanted = SETTINGS | QUICK_HEARTBEATS | settings
    with OurBroker(directory / "ours", wanted) as ours:
        real = start_real(directory / "real", settings=wanted)
        try:
            yield ours.bootstrap, real.bootstrap
        finally:
            real.stop()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """The addresses of our broker and of a real one, where everybody may do everything."""
    with both_brokers(tmp_path_factory.mktemp("drawn"), AT_ONCE) as found:
        yield found


@pytest.mark.parametrize(
    ("areas", "seed"),
    [
        pytest.param(areas, seed, id=f"{'-'.join(areas)}-{seed}")
        for areas, seeds in SESSIONS
        for seed in seeds
    ],
)
def test_a_drawn_session_is_answered_alike(areas: tuple[str, ...], seed: int, both: Both) -> None:
    """Field by field, but for what each broker makes up by itself."""
    twin = run(*both, seed, areas, prefix=areas[0])
    assert len(twin.steps) >= 60
    assert "\n".join(map(str, twin.differences)) == ""


def test_rules_are_made_and_found_alike(tmp_path: Path) -> None:
    """The same of rules of access, with an authorizer at both."""
    with both_brokers(tmp_path, AT_ONCE | AUTHORIZER) as both:
        for seed in (0, 1, 2):
            twin = run(*both, seed, ("acls",))
            assert "\n".join(map(str, twin.differences)) == ""
