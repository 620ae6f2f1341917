"""What tests of the commands share."""

from __future__ import annotations

import pytest

from tests.tools.command_line import CommandLine


@pytest.fixture
def logstore(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line, to be called with arguments."""
    return CommandLine(monkeypatch, capsys)
