"""What every test may use: where the golden data is, and how hard Hypothesis tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Shared machines stall; a deadline per example would make honest tests fail now and then.
settings.register_profile(
    "fast", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", parent=settings.get_profile("fast"), derandomize=True)
settings.register_profile("long", parent=settings.get_profile("fast"), max_examples=2000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "fast")
)


@pytest.fixture(scope="session")
def golden() -> Path:
    """Directory of the golden data; see its README for what is where. Never write there."""
    return Path(__file__).resolve().parent / "golden"
