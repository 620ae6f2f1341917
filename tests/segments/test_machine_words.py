"""Steps of many bytes at once: what the processor does is what plain Python does."""

from __future__ import annotations

import importlib.util
import random
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from logstore.segments.compiled import machine_words
from logstore.segments.compiled.loops import compiled

NAME = "logstore.segments.compiled.machine_words"


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is without numba."""
    monkeypatch.setitem(sys.modules, "logstore.segments.compiled.machine_code", None)
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@compiled
def take_steps(source: Any, at: Any, target: Any) -> Any:
    """Read in every way at a place, and write in every way."""
    narrow, wide = machine_words.signed_32(source, at), machine_words.signed_64(source, at)
    word = machine_words.word(source, at)
    machine_words.put_32(target, 1, narrow)
    machine_words.put_64(target, 5, wide)
    machine_words.copy(source, at, 13, target, 13)
    return narrow, wide, word


def test_compiled_code_says_what_plain_python_says(plain: ModuleType) -> None:
    """At every place, aligned or not, and nothing around it changes."""
    source = np.frombuffer(random.Random(3).randbytes(64), np.uint8)
    for at in range(48):
        target, expected = np.full(30, 7, np.uint8), np.full(30, 7, np.uint8)
        found = take_steps(source, at, target)
        narrow, wide = plain.signed_32(source, at), plain.signed_64(source, at)
        assert [int(value) for value in found] == [narrow, wide, int(plain.word(source, at))]
        plain.put_32(expected, 1, narrow)
        plain.put_64(expected, 5, wide)
        plain.copy(source, at, 13, expected, 13)
        assert target.tobytes() == expected.tobytes()


def test_nothing_is_folded_without_the_processor(plain: ModuleType) -> None:
    """Who folds a checksum has asked whether it can be."""
    assert not plain.CAN_FOLD
    with pytest.raises(NotImplementedError, match="4 steps from 0 on, of 64 bytes"):
        plain.fold_crc32(np.zeros(64, np.uint8), 0, 4)
