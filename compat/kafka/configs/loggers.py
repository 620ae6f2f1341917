"""
The broker's loggers as a resource with settings (KIP-412): which are there, how much they log.

They are this package's own loggers, under their names; ``root`` is the package's. A level that is
set holds for the process, as everywhere with :mod:`logging`, until somebody deletes it.

Source: ``RuntimeLoggerManager``, ``LoggingController``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from logstore.compat.kafka.configs.changes import Change

ROOT = "root"
_PACKAGE = "logstore"
_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_SET, _DELETE = 0, 1
_NEVER = {2: "APPEND operation is", 3: "SUBTRACT operation is"}


def levels() -> dict[str, str]:
    """Return the level in force of every logger, by name."""
    names = [ROOT, *sorted(name for name in logging.root.manager.loggerDict if _is_ours(name))]
    return {name: _name_of(_logger(name).getEffectiveLevel()) for name in names}


def change_levels(changes: Sequence[Change], *, is_rehearsal: bool) -> None:
    """
    Set or delete levels.

    Raises:
        RefusedRequestError: 40 no such logger or level, 42 another operation, or a deletion of the
            package's own level; nothing was changed.

    """
    known = levels()
    for change in changes:
        if change.operation not in (_SET, _DELETE):
            what = _NEVER.get(change.operation, f"Unknown operation type {change.operation} is")
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST, f"{what} not allowed for the BROKER_LOGGER resource"
            )
        if change.name not in known:
            raise RefusedRequestError(
                ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!"
            )
        if change.operation == _DELETE and change.name == ROOT:
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST,
                f"Removing the log level of the {ROOT} logger is not allowed",
            )
        if change.operation == _SET and change.value not in _LEVELS:
            raise RefusedRequestError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {change.name} to {change.value} as it is not a "
                f"supported log level. Valid log levels are {', '.join(sorted(_LEVELS))}",
            )
    if is_rehearsal:
        return
    for change in changes:
        is_set = change.operation == _SET
        _logger(change.name).setLevel(_LEVELS[change.value or ""] if is_set else logging.NOTSET)


def _is_ours(name: str) -> bool:
    return name.startswith(f"{_PACKAGE}.")


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_PACKAGE if name == ROOT else name)


def _name_of(level: int) -> str:
    """Return the least severe of Kafka's levels that is logged."""
    for name, value in _LEVELS.items():
        if value >= level:
            return name
    return "FATAL"
