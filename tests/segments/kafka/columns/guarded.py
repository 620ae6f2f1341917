"""Loops run uncompiled, over arrays that look at every index."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import numpy as np


class Guarded(np.ndarray[Any, Any]):
    """An array that refuses the indices and slices that compiled code would silently follow."""

    def __getitem__(self, key: Any) -> Any:
        self._check(key)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check(key)
        super().__setitem__(key, value)

    def _check(self, key: Any) -> None:
        for part, size in zip(np.index_exp[key], self.shape, strict=False):
            first = getattr(part, "start", part)
            last = getattr(part, "stop", first + 1)
            assert 0 <= first <= last <= size, f"{part} of {size}"


def guarded(value: Any) -> Any:
    """Return an array as one that is guarded, anything else as it is."""
    return value.view(Guarded) if isinstance(value, np.ndarray) else value


def loaded_anew(module: ModuleType) -> ModuleType:
    """Return a second one of a module, as it is with what can be imported now."""
    assert module.__file__ is not None
    spec = importlib.util.spec_from_file_location(f"{module.__name__}_anew", module.__file__)
    assert spec is not None
    assert spec.loader is not None
    anew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(anew)
    return anew
