"""Sessions drawn from seeds: whatever is asked, a real broker and ours answer the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.interop.conftest import SETTINGS, start_real
from tests.interop.drawn.session import run
from tests.interop.our_broker import OurBroker

pytestmark = pytest.mark.interop

SEEDS = (3, 6, 8, 13)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the addresses of our broker and of a real one, both new."""
    directory = tmp_path_factory.mktemp("drawn")
    with ExitStack() as stack:
        ours = stack.enter_context(OurBroker(directory / "ours", SETTINGS))
        real = start_real(directory / "real")
        stack.callback(real.stop)
        yield ours.bootstrap, real.bootstrap


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_session_is_answered_alike(seed: int, both: tuple[str, str]) -> None:
    """Field by field, but for what each broker makes up by itself."""
    twin = run(*both, seed)
    assert len(twin.steps) > 60
    assert "\n".join(map(str, twin.differences)) == ""
