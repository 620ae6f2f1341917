"""What a command needs that a plain installation does not bring along."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from logstore.errors import LogStoreError


class MissingExtraError(LogStoreError):
    """What a command needs is not installed."""


def require(command: str, modules: Iterable[str], extra: str, or_else: str = "") -> None:
    """
    Make sure that `modules` can be imported, without importing them.

    Raises:
        MissingExtraError: one cannot; `extra` would bring it, `or_else` says how to do without.

    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError(
                f"{command} needs {module}: pip install 'logstore-segments[{extra}]'{or_else}"
            )
