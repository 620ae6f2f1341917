"""Levels of loggers, shown and changed as settings."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.compat.kafka.config_requests import APPEND, DELETE, LOGGER, SET, alter, replace, shown
from tests.compat.kafka.conversation import Conversation


@pytest.fixture
def quiet() -> Iterator[logging.Logger]:
    """A logger of the package, whose level is put back."""
    logger = logging.getLogger("logstore.quiet")
    levels = [(one, one.level) for one in (logger, logging.getLogger("logstore"))]
    yield logger
    for one, level in levels:
        one.setLevel(level)


def test_levels_of_loggers_are_shown_and_changed(quiet: logging.Logger) -> None:
    """A logger's level is set by Kafka's name for it, and deleted back to the package's."""
    conversation = Conversation()
    name = quiet.name
    assert alter(conversation, LOGGER, "1", ("root", SET, "ERROR"), (name, SET, "DEBUG")) == 0
    assert shown(conversation, LOGGER, "1", name) == ("DEBUG", 6)
    assert quiet.level == logging.DEBUG
    assert alter(conversation, LOGGER, "1", (name, SET, "FATAL"), is_rehearsal=True) == 0
    assert alter(conversation, LOGGER, "1", (name, DELETE, None)) == 0
    assert shown(conversation, LOGGER, "1", name) == ("ERROR", 6)
    assert shown(conversation, LOGGER, "1", "root") == ("ERROR", 6)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("logstore.no.such", SET, "INFO"), 40),
        (("urllib3", SET, "INFO"), 40),
        (("root", SET, "LOUD"), 40),
        (("root", DELETE, None), 42),
        (("root", APPEND, "INFO"), 42),
    ],
)
def test_other_changes_of_loggers_are_refused(
    change: tuple[str, int, str | None], code: int, quiet: logging.Logger
) -> None:
    """Only loggers of the package have levels that can be set; a bad change changes nothing."""
    conversation = Conversation()
    before = quiet.level
    assert alter(conversation, LOGGER, "1", (quiet.name, SET, "TRACE"), change) == code
    assert quiet.level == before
    assert replace(conversation, LOGGER, "1", {quiet.name: "TRACE"}) == 42
