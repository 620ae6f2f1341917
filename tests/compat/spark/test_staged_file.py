"""Files that tasks put beside a store: whole, or known not to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.spark import store_commit
from logstore.compat.spark.staged_file import Portion, StagedFile, StagedFileWriter
from logstore.errors import StorageError
from logstore.partition import Record
from tests.compat.spark.test_writing import commit_to, rows_of, staged_by, stored

PORTIONS: list[tuple[tuple[str, int], Portion]] = [
    (("u", 1), [Record(b"k", bytes(number), number) for number in range(40)]),
    (("t", 0), [Record(None, b"large" * 40_000, 7)]),
    (("u", 1), [Record(b"again", None, 8)]),
]


def written(path: Path) -> StagedFile:
    """Return a file of these portions."""
    with StagedFileWriter(str(path), is_durable=True) as file:
        for place, portion in PORTIONS:
            file.put(place, portion)
    return StagedFile(str(path))


def test_what_was_put_is_there(tmp_path: Path) -> None:
    """In its order; the places are told without it."""
    file = written(tmp_path / "file")
    assert file.is_whole()
    assert file.places() == [("t", 0), ("u", 1)]
    assert list(file.portions()) == PORTIONS
    assert file.size_bytes == (tmp_path / "file").stat().st_size


def test_a_task_without_rows(tmp_path: Path) -> None:
    """It has a file all the same."""
    with StagedFileWriter(str(tmp_path / "file"), is_durable=False):
        pass
    file = StagedFile(str(tmp_path / "file"))
    assert file.is_whole()
    assert (file.places(), list(file.portions())) == ([], [])


def test_a_task_that_fails_leaves_nothing_whole(tmp_path: Path) -> None:
    """Its error is what is told."""

    def failing() -> None:
        with StagedFileWriter(str(tmp_path / "file"), is_durable=True) as file:
            file.put(*PORTIONS[0])
            raise KeyError("the task's own")

    with pytest.raises(KeyError, match="the task's own"):
        failing()
    file = StagedFile(str(tmp_path / "file"))
    assert not file.is_whole()
    for asked in (file.places, lambda: list(file.portions())):
        with pytest.raises(StorageError, match="ends in the middle"):
            asked()


@given(data=st.data())
def test_damage_is_found(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A byte that changed, an end that is missing, a part that is only zeros."""
    path = tmp_path_factory.mktemp("staged") / "file"
    written(path)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "zeros"]))
    if kind == "flip":
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del content[at:]
    else:
        content[at : at + 4096] = bytes(len(content[at : at + 4096]))
    is_same = bytes(content) == path.read_bytes()
    path.write_bytes(content)
    assert StagedFile(str(path)).is_whole() == is_same


def test_one_that_is_missing(tmp_path: Path) -> None:
    """It is not whole."""
    assert not StagedFile(str(tmp_path / "file")).is_whole()


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_job_that_the_power_took_is_undone(
    layout: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a Kafka log nothing stays; a commit log keeps what it has, and the store goes on."""
    commit = commit_to(tmp_path / "store", layout)
    commit.commit([staged_by(commit, rows_of(range(20)))])
    before = stored(tmp_path / "store", layout)
    file = staged_by(commit, rows_of(range(20, 40)))
    module: Any = store_commit
    append, made = module._append_portion, iter(range(1000))

    def dying(*given: Any, **more: Any) -> None:
        if next(made) == 1:
            raise KeyboardInterrupt
        append(*given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_append_portion", dying)
        with pytest.raises(KeyboardInterrupt):
            commit.commit([file])
    content = Path(file).read_bytes()
    damaged = {"cut": content[:-1], "flipped": b"\0" + content[1:], "gone": b""}[damage]
    Path(file).write_bytes(damaged)
    again = commit_to(tmp_path / "store", layout)
    again.finish_last()
    found = stored(tmp_path / "store", layout)
    if layout == "kafka":
        assert found == before
    else:
        assert [part[: len(old)] for part, old in zip(found, before, strict=True)] == before
        assert 20 < sum(map(len, found)) < 40
    again.commit([staged_by(again, rows_of(range(40, 45)))])
    assert sum(map(len, stored(tmp_path / "store", layout))) == sum(map(len, found)) + 5
