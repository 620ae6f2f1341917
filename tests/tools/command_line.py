"""Runs ``logstore`` as a shell would: arguments in, exit code, stdout and stderr out."""

from __future__ import annotations

import json
import sys
from typing import Any

import attrs
import pytest

from logstore.tools.cli import main


@attrs.frozen
class Outcome:
    """What a command left behind."""

    exit_code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of stdout."""
        return self.out.splitlines()

    @property
    def json_lines(self) -> list[dict[str, Any]]:
        """The lines of stdout, each a JSON object."""
        return [json.loads(line) for line in self.lines]

    @property
    def json(self) -> dict[str, Any]:
        """All of stdout as one JSON object."""
        content: dict[str, Any] = json.loads(self.out)
        return content


class CommandLine:
    """Runs commands in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Outcome:
        """Run ``logstore`` with these arguments."""
        argv = ["logstore", *(str(argument) for argument in arguments)]
        self._monkeypatch.setattr(sys, "argv", argv)
        exit_code = 0
        try:
            main()
        except SystemExit as stop:
            exit_code = int(stop.code or 0)
        out, err = self._capsys.readouterr()
        return Outcome(exit_code, out, err)
