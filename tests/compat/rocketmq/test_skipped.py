"""The page of what is left out says what is really there."""

from __future__ import annotations

import importlib.resources
import re
from pathlib import Path

from logstore.compat.rocketmq.name_server.name_server import HANDLERS as NAME_SERVER_HANDLERS
from logstore.compat.rocketmq.registry import HANDLERS
from logstore.compat.rocketmq.wire.codes import RequestCode

_ROW = re.compile(r"\| (\d+) \| (\w+) \|(.*)")


def tables() -> list[dict[int, tuple[str, str]]]:
    """Return the page's tables: name and the rest of the row by code."""
    page = Path(str(importlib.resources.files("logstore.compat.rocketmq"))) / "SKIPPED.md"
    found: list[dict[int, tuple[str, str]]] = []
    for part in page.read_text().split("\n## ")[1:]:
        rows = [_ROW.fullmatch(line) for line in part.splitlines()]
        found.append({int(row[1]): (row[2], row[3].strip(" |")) for row in rows if row})
    return found


def test_every_code_that_is_served_is_listed() -> None:
    """The page lists exactly the codes in the registries of broker and name server, by name."""
    by_broker, by_name_server, _ = tables()
    for listed, handlers in ((by_broker, HANDLERS), (by_name_server, NAME_SERVER_HANDLERS)):
        names = {code: name for code, (name, _) in listed.items()}
        assert names == {code: RequestCode(code).name for code in handlers}


def test_every_code_that_rocketmq_has_is_listed() -> None:
    """What is not served is listed with a reason, and no code is forgotten or stands twice."""
    by_broker, by_name_server, absent = tables()
    served = by_broker.keys() | by_name_server.keys()
    assert served & absent.keys() == set()
    assert served | absent.keys() == {int(code) for code in RequestCode}
    assert all(reason for _, reason in absent.values())


def test_every_handler_can_be_loaded() -> None:
    """Each code of the broker has a file of its own, with one kind of handler in it."""
    for handler in HANDLERS.values():
        handler.load()
        assert (handler.handle is None) != (handler.handle_raw is None), handler.module
