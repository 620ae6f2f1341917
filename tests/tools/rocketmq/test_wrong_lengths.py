"""Files of a wrong length are the odd ones: what most of them show is how long all must be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore.segments.rocketmq.opening.found_sizes import usual_length
from tests.segments.rocketmq.golden_case import golden_cases
from tests.tools.command_line import CommandLine
from tests.tools.rocketmq.test_salvage_rocketmq import messages_of, opened


def test_what_most_files_show() -> None:
    """Lengths and the places where files begin are votes; a whole number of units is preferred."""
    assert usual_length([]) == 0
    assert usual_length([[(0, 36_160), (65_536, 65_536)]]) == 65_536
    assert usual_length([[(0, 65_569), (65_536, 0), (131_072, 65_569)]]) == 65_536
    assert usual_length([[(0, 633)], [(0, 600)]], 20) == 600
    assert usual_length([[(0, 400)], [(0, 600)]], 20) == 600


@pytest.mark.parametrize("by", [-33, 33, -40])
def test_one_queue_file_does_not_change_the_others(
    by: int, tmp_path: Path, logstore: CommandLine
) -> None:
    """Verify names the first file if its length is wrong, and reindex makes that one alone anew."""
    (case,) = golden_cases("plain", version="5.5.0")
    store = case.copy_store(tmp_path / "store")
    files = sorted(path for path in (store / "consumequeue").rglob("0*") if path.is_file())
    before = {path: path.read_bytes() for path in files}
    first = files[0]
    os.truncate(first, first.stat().st_size + by)
    name = first.relative_to(store).as_posix()
    damage = logstore("verify", "--json", store).json_lines
    assert name in {line["file"] for line in damage if line["severity"] == "damage"}
    changed = logstore("reindex", "--json", store)
    assert changed.exit_code == 0, changed.err
    outcomes = {line["file"] for line in changed.json_lines if line["outcome"] != "unchanged"}
    assert outcomes == {name}
    assert {path: path.read_bytes() for path in files} == before


@pytest.mark.parametrize("size_bytes", [1098, 36_160, 65_569])
def test_the_first_file_of_a_log_does_not_set_the_length(
    size_bytes: int, tmp_path: Path, logstore: CommandLine
) -> None:
    """Salvage makes files as long as the others, where the first was cut or has grown."""
    (case,) = golden_cases("properties", version="5.5.0")
    store = case.copy_store(tmp_path / "store")
    files = sorted((store / "commitlog").iterdir())
    assert len(files) > 1
    os.truncate(files[0], size_bytes)
    outcome = logstore("salvage", store, "--into", tmp_path / "saved")
    assert outcome.exit_code == 0, outcome.err
    made = sorted((tmp_path / "saved" / "commitlog").iterdir())
    assert {path.stat().st_size for path in made} == {files[1].stat().st_size}
    whole, found = (
        opened(case, case.copy_store(tmp_path / "whole")),
        opened(case, tmp_path / "saved"),
    )
    assert messages_of(found).keys() == messages_of(whole).keys()
    whole.close()
    found.close()


def test_what_stands_in_at_the_start_is_as_old_as_what_follows(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """A lost beginning is not of 1970: an index that begins then could say no time."""
    (case,) = golden_cases("properties", version="5.5.0")
    store = case.copy_store(tmp_path / "store")
    os.truncate(min((store / "commitlog").iterdir()), 0)
    assert logstore("salvage", store, "--into", tmp_path / "saved").exit_code == 0
    lines = logstore("dump", "--json", min((tmp_path / "saved" / "commitlog").iterdir())).json_lines
    times = [line["storeTimestamp"] for line in lines if "storeTimestamp" in line]
    assert times
    assert min(times) > 0
    saved = opened(case, tmp_path / "saved")
    assert all(message.store_timestamp_ms > 0 for message in messages_of(saved).values())
    saved.close()


def test_a_queue_file_with_a_name_that_no_broker_gives_is_left_behind(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """Somebody's copy of a file does not make the new store a damaged one."""
    (case,) = golden_cases("plain", version="5.5.0")
    store = case.copy_store(tmp_path / "store")
    file = next(path for path in sorted((store / "consumequeue").rglob("0*")) if path.is_file())
    strange = file.with_name(file.name[1:])
    strange.write_bytes(file.read_bytes())
    outcome = logstore("salvage", store, "--into", tmp_path / "saved")
    assert outcome.exit_code == 0, outcome.err
    assert not (tmp_path / "saved" / strange.relative_to(store)).exists()
    assert (tmp_path / "saved" / file.relative_to(store)).exists()
