"""Batches are taken alike with the compiled loop over headers and without it."""

from __future__ import annotations

import random
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptEntryError
from logstore.segments.compiled import loops, machine_words
from logstore.segments.kafka.columns import Selection, batch_kernel
from logstore.segments.kafka.columns.batch_kernel import SOURCE_BYTES_MAX
from logstore.segments.kafka.columns.batch_run import BatchRun, OlderMessageError
from logstore.segments.kafka.record import Record, encode_batch
from tests.damage import damaged
from tests.segments.kafka.columns.batches import Run, runs
from tests.segments.kafka.columns.guarded import guarded, loaded_anew

_PLAIN = b"".join(
    bytes(encode_batch([Record(base + n, n, b"key", bytes(n)) for n in range(3)], base_offset=base))
    for base in (4, 7, 12, 40)
)


def _taken(data: bytes, selection: Selection, size_bytes_max: int) -> object:
    """Return all that is to be seen of a run: what it holds, or how it is refused."""
    run = BatchRun(memoryview(data), "a.log", 1000, selection)
    try:
        end = run.take(size_bytes_max)
    except (CorruptEntryError, OlderMessageError) as error:
        return type(error), str(error)
    return end, run.starts, run.sizes, run.is_full


def _both_ways(data: bytes, selection: Selection, size_bytes_max: int) -> object:
    """Assert that both ways see the same; return it."""
    found = _taken(data, selection, size_bytes_max)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "is_available", lambda: False)
        assert _taken(data, selection, size_bytes_max) == found
    return found


@st.composite
def _selections(draw: st.DrawFn) -> Selection:
    bound = st.one_of(st.none(), st.integers(0, 60))
    return Selection(
        draw(bound),
        draw(bound),
        has_control=draw(st.booleans()),
        is_checked=draw(st.booleans()),
        is_run=draw(st.booleans()),
    )


@given(runs(), _selections(), st.sampled_from([1, 200, SOURCE_BYTES_MAX]))
def test_honest_batches(run: Run, selection: Selection, size_bytes_max: int) -> None:
    """Every kind of batch, wherever the wanted offsets begin and end."""
    _both_ways(run.data, selection, size_bytes_max)


@given(_selections(), st.sampled_from([1, 200, SOURCE_BYTES_MAX]), st.integers(0, 2**32))
def test_damaged_batches(selection: Selection, size_bytes_max: int, seed: int) -> None:
    """The same batches, the same error with the same position, whatever is wrong."""
    _both_ways(damaged(_PLAIN, random.Random(seed)), selection, size_bytes_max)


def test_plain_batches_are_all_the_loops() -> None:
    """Those of most logs are found by the loop alone, the one that straddles the start too."""
    found = np.empty((batch_kernel.ROWS, 10), dtype=np.int64)
    data = np.frombuffer(_PLAIN, dtype=np.uint8)
    first, size_bytes = 5, len(_PLAIN) // 4
    count, position, counted, last = batch_kernel.usual_batches(data, first, 100, -1, 10**6, found)
    assert (count, position, counted, last) == (4, len(_PLAIN), len(_PLAIN) - 4 * 12, 42)
    assert found[batch_kernel.START, :4].tolist() == [n * size_bytes for n in range(4)]
    assert set(found[batch_kernel.SIZE_BYTES, :4].tolist()) == {size_bytes}


@pytest.mark.parametrize("offset", [2**62, 2**63 - 1, -1, -(2**63)])
def test_absurd_offsets_do_not_wrap(offset: int) -> None:
    """Offsets near the end of 64 bits are looked at with care."""
    data = offset.to_bytes(8, "big", signed=True) + _PLAIN[8:]
    for selection in (Selection(), Selection(5, is_run=True), Selection(5, 100)):
        _both_ways(data, selection, SOURCE_BYTES_MAX)


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The loop as it is without numba."""
    for name in ("numba", "logstore.segments.compiled.machine_code"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, loops.__name__, loaded_anew(loops))
    monkeypatch.setitem(sys.modules, machine_words.__name__, loaded_anew(machine_words))
    module = loaded_anew(batch_kernel)
    assert not hasattr(module.usual_batches, "py_func"), "numba has compiled it"
    return module


def test_no_damage_leads_outside_of_the_arrays(uncompiled: ModuleType) -> None:
    """Every index of the loop is looked at, over a thousand kinds of damage."""
    chance = random.Random(8)
    for _ in range(1_000):
        bad = np.frombuffer(damaged(_PLAIN, chance), dtype=np.uint8)
        first, size_bytes_max = chance.randrange(50), chance.choice([100, 10**6])
        tables = [np.zeros((batch_kernel.ROWS, len(bad) // 61), np.int64) for _ in range(2)]
        plain = uncompiled.usual_batches(
            guarded(bad), first, 60, -1, size_bytes_max, guarded(tables[0])
        )
        compiled = batch_kernel.usual_batches(bad, first, 60, -1, size_bytes_max, tables[1])
        assert tuple(map(int, plain)) == tuple(map(int, compiled))
        assert tables[0].tolist() == tables[1].tolist()
