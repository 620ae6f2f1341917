"""
The foreign contracts that the store honours: protocols of the real brokers, and Spark.

:class:`TestBroker` is the door for tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logstore.compat.strange_settings import StrangeSettingWarning
    from logstore.compat.test_broker import TestBroker

__all__ = ["StrangeSettingWarning", "TestBroker"]


def __getattr__(name: str) -> Any:
    """Import the broker at first use, so that tools which only read files start fast."""
    if name == "TestBroker":
        from logstore.compat.test_broker import TestBroker

        return TestBroker
    if name == "StrangeSettingWarning":
        from logstore.compat.strange_settings import StrangeSettingWarning

        return StrangeSettingWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
