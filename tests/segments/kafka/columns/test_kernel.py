"""The compiled loops, run uncompiled: every index is looked at by numpy and by the test."""

from __future__ import annotations

import random
import sys
from collections import Counter
from types import ModuleType
from typing import Any

import pytest

from logstore.errors import CorruptEntryError
from logstore.segments.compiled import loops
from logstore.segments.kafka.columns import Selection, decode_columns, decoder, kernel
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import (
    CorruptRecordError,
    Record,
    decode_records,
    encode_batch,
)
from logstore.segments.kafka.record_batch import HEADER_BYTES
from tests.damage import damaged
from tests.segments.kafka.columns.guarded import guarded, loaded_anew


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is without numba, its four entries taking guarded arrays."""
    monkeypatch.setitem(sys.modules, "numba", None)
    plain = loaded_anew(loops)
    assert not plain.is_available()
    monkeypatch.setitem(sys.modules, loops.__name__, plain)
    module = loaded_anew(kernel)
    assert not hasattr(module.scan, "py_func"), "numba has compiled it"
    for name in ("scan", "bound", "gather", "scan_headers"):
        function = getattr(module, name)

        def watched(*arguments: Any, function: Any = function) -> Any:
            return function(*map(guarded, arguments))

        monkeypatch.setattr(module, name, watched)
    monkeypatch.setattr(plain, "is_available", lambda: True)
    monkeypatch.setattr(decoder, "loops", plain)
    monkeypatch.setattr(decoder, "kernel", module)
    return module


HONEST = [
    bytes(
        encode_batch(
            [
                Record(7, 1_000, b"key", b"value" * 20, (("name", b"x"), ("", None))),
                Record(8, 900, None, b"", ()),
                Record(12, -1, b"", None, (("h", b"y" * 70),)),
            ],
            base_offset=5,
            base_sequence=2**31 - 2,
            producer_id=1,
            producer_epoch=0,
        )
    ),
    bytes(encode_batch([Record(i, i, None, bytes(i)) for i in range(9)])),
]


def _is_read_like_the_other_does(data: bytes) -> bool:
    """
    Assert that both decoders read the same of `data`, one batch with any CRC, or both refuse it.

    Returns whether they read it.
    """
    try:
        expected = decode_records(data)
    except CorruptRecordError:
        with pytest.raises(CorruptEntryError):
            decode_columns(data, selection=Selection(is_checked=False))
        return False
    columns = decode_columns(data, selection=Selection(is_checked=False))
    if all(-(2**63) <= r.offset < 2**63 and -(2**63) <= r.timestamp_ms < 2**63 for r in expected):
        assert columns.records() == expected
    return True


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("data", HONEST, ids=["headers", "plain"])
def test_no_damage_leads_outside_of_the_arrays(data: bytes) -> None:
    """Each byte with each of seven values: read as the record decoder does, or an error."""
    outcomes: Counter[bool] = Counter()
    for position in range(HEADER_BYTES, len(data)):
        for byte in (0x00, 0x01, 0x7E, 0x7F, 0x80, 0xFE, 0xFF):
            bad = bytearray(data)
            bad[position] = byte
            outcomes[_is_read_like_the_other_does(bytes(bad))] += 1
    assert min(outcomes[True], outcomes[False]) > 0


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_heavier_damage_leads_nowhere_either() -> None:
    """Cuts, insertions, repeated pieces and absurd integers among the records: the same."""
    chance = random.Random(5)
    outcomes: Counter[bool] = Counter()
    for _ in range(1_500):
        bad = bytearray(damaged(chance.choice(HONEST), chance, HEADER_BYTES))
        bad[8:12] = (len(bad) - 12).to_bytes(4, "big")
        outcomes[_is_read_like_the_other_does(bytes(bad))] += 1
    assert min(outcomes[True], outcomes[False]) > 0


def test_compiled_loops_agree_on_damage() -> None:
    """The compiled form accepts and refuses what the record decoder does, a thousand times."""
    chance = random.Random(6)
    outcomes: Counter[bool] = Counter()
    for _ in range(1_000):
        bad = bytearray(damaged(chance.choice(HONEST), chance, HEADER_BYTES))
        bad[8:12] = (len(bad) - 12).to_bytes(4, "big")
        outcomes[_is_read_like_the_other_does(bytes(bad))] += 1
    assert min(outcomes[True], outcomes[False]) > 0


def test_any_damage_anywhere_ends_in_our_own_error() -> None:
    """Whole runs of batches, headers damaged too, CRCs on and off: columns, or our own error."""
    chance = random.Random(7)
    packed = bytes(encode_batch([Record(0, 1, b"k" * 99, b"v" * 99)], codec=Codec.LZ4))
    data = b"".join(HONEST) + packed
    refused = 0
    for _ in range(1_000):
        bad = damaged(data, chance)
        try:
            decode_columns(bad, selection=Selection(is_checked=chance.random() < 0.5))
        except CorruptEntryError as error:
            refused += 0 <= error.position <= len(bad)
    assert refused > 700, "damage that is never noticed is no damage"
