"""The golden RocketMQ archives unpack to whole cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.segments.rocketmq.golden_case import GOLDEN, GoldenCase, golden_cases


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_each_case_has_its_stores_and_messages(case: GoldenCase) -> None:
    """Each case unpacks to a description, commit logs of the size named, and messages."""
    assert (case.content["case"], case.content["version"]) == (case.name, case.version)
    size_bytes = int(case.settings["mappedFileSizeCommitLog"])
    assert case.stores
    for store in case.stores.values():
        sizes = {path.stat().st_size for path in (store / "commitlog").iterdir()}
        assert sizes == {size_bytes}
        assert (store / "checkpoint").stat().st_size == 4096
    names = case.content["expected"]
    assert names
    assert {name: len(case.messages_in(name)) for name in names} == names


@pytest.mark.parametrize("case", golden_cases("crash", "crash-pool", "damage"), ids=lambda c: c.id)
def test_pairs_have_both_sides(case: GoldenCase, tmp_path: Path) -> None:
    """Each recovered store stands beside the one that the broker found, and can be copied."""
    assert len(case.pairs) == (13 if case.name == "damage" else 1)
    for pair in case.pairs:
        copied = pair.copy_before(tmp_path / pair.name)
        for path in pair.before.rglob("*"):
            if path.is_file():
                assert (copied / path.relative_to(pair.before)).read_bytes() == path.read_bytes()
        assert pair.expected
        assert (pair.after / "commitlog").is_dir()


def test_wire_cases_have_every_recording() -> None:
    """A wire case holds the frames of each client, those of a request with its code."""
    for case in golden_cases("wire", "wire-cpp"):
        for client, counts in case.content["request_codes"].items():
            frames = case.transcripts[client]
            requests = [frame["code"] for frame in frames if "response" not in frame["kind"]]
            assert {str(code): requests.count(code) for code in set(requests)} == counts


def test_the_archives_stay_small() -> None:
    """All archives together stay below 1.3 MB."""
    assert sum(path.stat().st_size for path in GOLDEN.iterdir()) < 1_300_000
