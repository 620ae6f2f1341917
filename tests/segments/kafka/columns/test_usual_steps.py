"""Steps of usual batches: the same rows as with care, and nothing that is not looked at."""

from __future__ import annotations

import random
import sys
from types import ModuleType
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptEntryError
from logstore.host import File
from logstore.segments.compiled import loops, machine_words
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.columns import (
    RecordColumns,
    Selection,
    batch_kernel,
    fill_kernel,
    iterate_columns,
    kernel,
    usual_steps,
)
from logstore.segments.kafka.columns.file_window import FileWindow
from logstore.segments.kafka.columns.usual_steps import UsualSteps
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES
from logstore.testing.simulated_host import SimulatedHost
from tests.damage import damaged
from tests.segments.kafka.columns.batches import Run, runs
from tests.segments.kafka.columns.guarded import guarded, loaded_anew

Rows = list[tuple[object, ...]]
STEPS = st.sampled_from([1, 100, 500, 2_000, 10**6])


def file_of(data: bytes) -> File:
    """Return a file with this in it."""
    file = SimulatedHost().fs.open("/a.log", create=True)
    file.write(0, data)
    return file


def batch_of(base_offset: int, *values: bytes | None, **settings: Any) -> bytes:
    """Return a batch of records without keys."""
    records = [Record(base_offset + n, n, None, value) for n, value in enumerate(values)]
    return bytes(encode_batch(records, base_offset=base_offset, **settings))


def usual(data: bytes, selection: Selection | None = None, step_bytes: int = 10**6) -> UsualSteps:
    """Return what decodes steps of these bytes."""
    selection = selection or Selection(has_headers=False)
    return UsualSteps(file_of(data), len(data), selection, step_bytes, ReusedMemory())


def rows_of(step: RecordColumns) -> Rows:
    """Return all that a step says of each record, and of its batch."""
    batches = step.batches
    of_batches = [
        values[step.batch].tolist()
        for values in (
            batches.position, batches.size_bytes, batches.magic, batches.attributes,
            batches.leader_epoch, batches.producer_id, batches.producer_epoch,
            batches.max_timestamp_ms, step.unpacked_bytes,
        )
    ]  # fmt: skip
    return list(zip(step.records(), *of_batches, strict=True))


def read(data: bytes, selection: Selection, step_bytes: int) -> tuple[Rows, str]:
    """Return the rows of all steps, and how it ended."""
    rows: Rows = []
    try:
        for step in iterate_columns(
            file_of(data), "a.log", selection=selection, step_bytes=step_bytes
        ):
            rows += rows_of(step)
    except CorruptEntryError as error:
        return rows, str(error)
    return rows, ""


def read_with_care(data: bytes, selection: Selection, step_bytes: int) -> tuple[Rows, str]:
    """As :func:`read`, without the short way."""

    def found_nothing(*_: object) -> None:
        """Tell that there is no usual batch."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UsualSteps, "decode", found_nothing)
        return read(data, selection, step_bytes)


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    """Some records, some columns."""
    bound, flag = st.one_of(st.none(), st.integers(0, 60)), st.booleans()
    return Selection(
        draw(bound), draw(bound), has_keys=draw(flag), has_values=draw(flag),
        has_headers=draw(flag), has_control=draw(flag), is_checked=draw(flag), is_run=draw(flag),
    )  # fmt: skip


@given(runs(), selections(), STEPS)
def test_steps_have_the_rows_that_care_finds(
    run: Run, selection: Selection, step_bytes: int
) -> None:
    """Whatever the batches are like, whatever is asked for, however long the steps are."""
    found = read(run.data, selection, step_bytes)
    assert found == read_with_care(run.data, selection, step_bytes)


PLAIN = b"".join(batch_of(base, b"one", None, bytes(base)) for base in range(0, 90, 6))


@given(selections(), STEPS, st.integers(0, 2**32))
def test_damage_is_told_as_it_is_with_care(
    selection: Selection, step_bytes: int, seed: int
) -> None:
    """The same error; and all rows before the damaged batch, where steps with care lose some."""
    # Without CRCs a step with care tells a bad record after a bad batch that comes behind it.
    selection = attrs.evolve(selection, is_checked=True)
    data = damaged(PLAIN, random.Random(seed))
    rows, error = read(data, selection, step_bytes)
    expected, expected_error = read_with_care(data, selection, step_bytes)
    assert error == expected_error
    assert rows[: len(expected)] == expected
    assert error or len(rows) == len(expected)


def test_usual_batches_take_the_short_way() -> None:
    """One step has them all, however many windows that takes; the next has none."""
    data = b"".join(batch_of(n, bytes(1_000)) for n in range(1_500))
    steps = usual(data, step_bytes=10**7)
    assert len(data) > 2 * usual_steps.WINDOW_BYTES
    step = steps.decode(0)
    assert step is not None
    assert step.offset.tolist() == list(range(1_500))
    assert step.next_position == len(data)
    assert steps.decode(len(data)) is None


@pytest.mark.parametrize(
    "unusual",
    [
        batch_of(5, b"x" * 50, codec=Codec.LZ4),
        batch_of(5, b"x", is_control=True),
        bytes(encode_batch([Record(5, 5, b"", b"", (("name", b""),))], base_offset=5)),
        batch_of(5, b"x")[:-1],
        batch_of(5, b"x")[:-1] + b"y",
        batch_of(5, bytes(usual_steps.WINDOW_BYTES)),
        batch_of(5, *[b""] * 70_000),
        batch_of(3, b"x"),
    ],
    ids=["compressed", "marker", "headers", "cut", "CRC", "large", "many", "out of place"],
)
def test_a_step_ends_in_front_of_what_is_unusual(unusual: bytes) -> None:
    """What comes before is a step, what comes there is none."""
    first = batch_of(4, b"a")
    steps = usual(first + unusual, Selection(), step_bytes=10**6)
    step = steps.decode(0)
    assert step is not None
    assert (step.offset.tolist(), step.next_position) == ([4], len(first))
    assert steps.decode(len(first), 4) is None


def test_what_is_out_of_place_is_found_across_steps() -> None:
    """A run's batches come in order, wherever one step ends and the next begins."""
    data = batch_of(4, b"a") + batch_of(5, b"b") + batch_of(5, b"c")
    for step_bytes in (1, 100, 10**6):
        selection = Selection(0, 100, is_run=True)
        for reader in (read, read_with_care):
            rows, error = reader(data, selection, step_bytes)
            assert "a batch of offset 5 is out of place" in error
            assert len(rows) == 2 or reader is read_with_care


def test_the_short_way_is_tried_less_often_where_it_leads_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A compressed log is not read twice."""
    asked: list[int] = []
    decode = UsualSteps.decode

    def counted(self: UsualSteps, position: int, last: int | None) -> RecordColumns | None:
        asked.append(position)
        return decode(self, position, last)

    monkeypatch.setattr(UsualSteps, "decode", counted)
    data = b"".join(batch_of(n, b"x" * 50, codec=Codec.LZ4) for n in range(300))
    rows, error = read(data, Selection(), 1)
    assert (len(rows), error) == (300, "")
    size_bytes = len(data) // 300
    assert [place // size_bytes for place in asked[:6]] == [0, 1, 3, 7, 15, 31]
    assert len(asked) < 12


# the window


@given(st.data())
def test_a_window_slides_over_its_file(data: st.DataObject) -> None:
    """It shows what is there, never more than fits, and reads no byte twice going forward."""
    content = random.Random(1).randbytes(300)
    end = data.draw(st.integers(0, 300))
    read_bytes = 0

    class Counted:
        def read_into(self, position: int, room: memoryview) -> int:
            nonlocal read_bytes
            read_bytes += len(room)
            room[:] = content[position : position + len(room)]
            return len(room)

    size_bytes = data.draw(st.integers(1, 100))
    window = FileWindow(Counted(), end, size_bytes)  # type: ignore[arg-type]
    while window.position < end:
        window.grow()
        assert len(window.view) == min(size_bytes, end - window.position)
        expected = content[window.position : window.position + len(window.view)]
        assert bytes(window.view) == window.array.tobytes() == expected
        assert not window.grow()
        window.seek(window.position + data.draw(st.integers(1, len(expected))))
    assert read_bytes == end
    window.seek(0)
    assert len(window.view) == 0


# the loop


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The loop as it is without numba; the compiled one has been compiled before."""
    assert usual(PLAIN).decode(0) is not None
    for name in ("numba", "logstore.segments.compiled.machine_code"):
        monkeypatch.setitem(sys.modules, name, None)
    for module in (loops, machine_words, kernel):
        monkeypatch.setitem(sys.modules, module.__name__, loaded_anew(module))
    anew = loaded_anew(fill_kernel)
    assert not hasattr(anew.fill, "py_func"), "numba has compiled it"
    return anew


def arrays_of(rows: int, data: bytes) -> list[Any]:
    """Return what the loop fills, in its order."""
    sizes: list[tuple[Any, Any]] = [
        ((6, 1), np.int32), (fill_kernel.STATES, np.int64), ((2, rows), np.int64),
        (rows, np.int32), (rows, np.int32),
        (rows + 1, np.int32), (rows, np.uint8), (len(data), np.uint8),
        (rows + 1, np.int32), (rows, np.uint8), (len(data), np.uint8),
        (len(data), np.uint8), (len(data) // HEADER_BYTES, np.int64),
    ]  # fmt: skip
    return [np.zeros(shape, kind) for shape, kind in sizes]


def test_no_damage_leads_outside_of_the_arrays(uncompiled: ModuleType) -> None:
    """Every index of the loop is looked at, over a thousand kinds of damage."""
    chance = random.Random(9)
    wholes = 0
    for _ in range(1_000):
        data = damaged(PLAIN[:400], chance)
        bad = np.frombuffer(data, dtype=np.uint8)
        found = np.zeros((batch_kernel.ROWS, len(bad) // HEADER_BYTES), np.int64)
        count, *_ = batch_kernel.usual_batches(bad, 0, 100, -1, 10**6, found)
        rows, wanted = chance.choice([4, 50]), chance.randrange(16)
        both = [arrays_of(rows, data) for _ in range(2)]
        fixed = found, int(count), 7, wanted, (1, 30)
        plain = uncompiled.fill(guarded(bad), *fixed, *map(guarded, both[0]))
        compiled = fill_kernel.fill(bad, *fixed, *both[1])
        assert int(plain) == int(compiled)
        wholes += int(plain) == int(count)
        state = both[0][1]
        assert state.tolist() == both[1][1].tolist()
        for one, other in zip(both[0][2:], both[1][2:], strict=True):
            assert one.tolist() == other.tolist()
    assert 100 < wholes < 1_000
