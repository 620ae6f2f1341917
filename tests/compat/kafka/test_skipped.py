"""The page of what is left out says what is really there."""

from __future__ import annotations

import importlib.resources
import json
import re
from pathlib import Path

from logstore.compat.kafka.registry import APIS
from tests.compat.kafka.conversation import message_class

_ROW = re.compile(r"\| (\d+) \| (\w+) \| (.*) \|")


def listed() -> dict[int, list[str]]:
    """Return what the page lists as served: the cells of a row by API key."""
    page = Path(str(importlib.resources.files("logstore.compat.kafka"))) / "SKIPPED.md"
    return rows(page.read_text())


def rows(text: str) -> dict[int, list[str]]:
    """Return the cells after the key of each row of a table."""
    found: dict[int, list[str]] = {}
    for line in text.splitlines():
        row = _ROW.fullmatch(line)
        if row is not None:
            assert int(row[1]) not in found, f"API {row[1]} is listed twice"
            found[int(row[1])] = [row[2], *(cell.strip() for cell in row[3].split(" | "))]
    return found


def test_every_registered_api_is_listed_with_its_versions() -> None:
    """The page lists exactly the registered APIs, each with the versions that are served."""
    served = {key: (cells[0], cells[1].split(" ")[0]) for key, cells in listed().items()}
    assert served == {
        key: (api.name, f"{api.version_min}-{api.version_max}") for key, api in APIS.items()
    }


def test_nothing_that_a_real_broker_has_is_forgotten(golden: Path) -> None:
    """Whatever the recorded broker advertises is listed as served."""
    lines = (golden / "wire" / "java.jsonl").read_text().splitlines()
    recorded = next(
        frame for frame in map(json.loads, lines)
        if frame["from"] == "broker" and frame["api"] == "ApiVersions"
    )  # fmt: skip
    answer = message_class("ApiVersionsResponse").decode(
        bytes.fromhex(recorded["hex"]), version=recorded["version"], header=True
    )
    assert set(listed()) == {api.api_key for api in answer.api_keys}
