"""What a session that keeps quiet is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from logstore.compat.spark import session


class Stopped:
    """A session that has nothing to stop."""

    def stop(self) -> None:
        """Do nothing."""


def test_what_java_logs_by_is_there_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the file once more after the session: a temporary one had gone, which it told."""
    told: list[Mapping[str, str]] = []

    def noted(master: str, settings: Mapping[str, str]) -> Stopped:
        told.append(settings)
        return Stopped()

    monkeypatch.setattr(session, "local_session", noted)
    with session.quiet_session("local[1]", {"a": "b"}):
        pass
    (settings,) = told
    assert settings["a"] == "b"
    found = re.search(r"configurationFile=(\S+)", settings["spark.driver.extraJavaOptions"])
    assert found is not None
    path = Path(unquote(urlsplit(found[1]).path))
    assert "rootLogger.level = error" in path.read_text()
