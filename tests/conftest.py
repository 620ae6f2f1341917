"""What every test may use: where the golden data is, and how hard Hypothesis tries."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.memory_disk import use_memory

# Shared machines stall; a deadline per example would make honest tests fail now and then.
settings.register_profile(
    "fast", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", parent=settings.get_profile("fast"), derandomize=True)
settings.register_profile("long", parent=settings.get_profile("fast"), max_examples=2000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "fast")
)

# Before there are any; the processes that share the tests hear of it.
use_memory(os.environ)

_INTEROP = Path(__file__).resolve().parent / "interop"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """
    Leave out files in which `-m` will find nothing: importing all of them takes ten seconds.

    Each of several test processes pays that, on the cores on which the others already test.
    """
    wanted = str(config.getoption("markexpr"))
    if wanted.startswith("not interop"):
        return collection_path == _INTEROP or None
    if wanted.startswith("interop") and collection_path.match("test_*.py"):
        return b"mark.interop" not in collection_path.read_bytes() or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Look for no garbage while a million objects come to stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep what has been collected out of the sight of every later look for garbage."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share tests out so that brokers start once, and loops are compiled once."""
    if str(config.getoption("markexpr")).startswith("interop"):
        from tests.interop.turns import Turns

        config.option.loadscopereorder = False  # files of many tests need not take long
        return Turns(config, log)
    is_whole = not config.getoption("file_or_dir") and not config.getoption("keyword")
    if is_whole and config.getoption("dist") == "load":
        from tests.compile_once import PROCESSES_MAX, CompileOnce

        if len(config.getoption("tx") or ()) <= PROCESSES_MAX:
            return CompileOnce(config, log)
    return None


@pytest.fixture(scope="session")
def golden() -> Path:
    """Directory of the golden data; see its README for what is where. Never write there."""
    return Path(__file__).resolve().parent / "golden"
