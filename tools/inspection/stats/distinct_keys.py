"""
How many keys differ, which cannot be counted exactly in little memory.

A few keys are all remembered. Of many there is HyperLogLog: 4,096 registers, each of which holds
the longest run of leading zeros among the hashes that fall to it. A count is made of them by the
estimator of Otmar Ertl ("New cardinality estimation algorithms for HyperLogLog sketches", 2017),
which needs no tables and is not biased, whatever the number. What one has seen depends on the set
of keys alone, not on their order or on how the work was cut, and two of them make one.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Hashes: TypeAlias = NDArray[np.uint64]

#: so many keys are remembered as they are, in 4 KiB
_FEW_MAX = 512
#: 2**12 registers: off by 1.6 percent (one standard deviation)
_REGISTERS_LOG = 12
_REGISTER_COUNT = 1 << _REGISTERS_LOG
#: bits of a hash in which zeros are counted
_REST_BITS = 64 - _REGISTERS_LOG
#: steps of splitmix64, which makes every bit depend on all
_MIX_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_MIX_SHIFT = np.uint64(31)


class DistinctKeys:
    """How many different keys there are: exactly up to 512, about beyond."""

    __slots__ = ("_few", "_registers")

    def __init__(
        self, few: Hashes | None = None, registers: NDArray[np.uint8] | None = None
    ) -> None:
        #: all hashes, ascending, as long as there are few
        self._few = np.zeros(0, dtype=np.uint64) if few is None else few
        self._registers = registers

    def __reduce__(self) -> tuple[type[DistinctKeys], tuple[Hashes, NDArray[np.uint8] | None]]:
        return DistinctKeys, (self._few, self._registers)

    def add(self, hashes: NDArray[np.int64]) -> None:
        """Take the hashes of keys; those that are there already change nothing."""
        self._take(_mixed(hashes.view(np.uint64)))

    def merge(self, other: DistinctKeys) -> None:
        """Take all that another one has seen."""
        if other._registers is None:
            self._take(other._few)
        else:
            self._registers = np.maximum(self._spread(), other._registers)

    def count(self) -> int:
        """Return how many there are; the same in whatever order they came."""
        return len(self._few) if self._registers is None else round(_estimate(self._registers))

    def _take(self, mixed: Hashes) -> None:
        if self._registers is not None:
            _note(self._registers, mixed)
            return
        self._few = np.union1d(self._few, mixed)
        if len(self._few) > _FEW_MAX:
            self._registers = self._spread()

    def _spread(self) -> NDArray[np.uint8]:
        """Return the registers, into which those few go that were remembered."""
        registers = self._registers
        if registers is None:
            registers = np.zeros(_REGISTER_COUNT, dtype=np.uint8)
            _note(registers, self._few)
            self._few = self._few[:0]
        return registers


def _mixed(hashes: Hashes) -> Hashes:
    """Return hashes whose bits are all alike good; FNV's upper ones are not, of short keys."""
    mixed = hashes
    for shift, factor in _MIX_STEPS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> _MIX_SHIFT)


def _note(registers: NDArray[np.uint8], mixed: Hashes) -> None:
    """Let every hash raise the register that it falls to."""
    places = (mixed >> np.uint64(_REST_BITS)).astype(np.intp)
    rests = (mixed & np.uint64((1 << _REST_BITS) - 1)).astype(np.float64)  # exact: 52 bits
    lengths = np.frexp(rests)[1]
    np.maximum.at(registers, places, (_REST_BITS + 1 - lengths).astype(np.uint8))


def _estimate(registers: NDArray[np.uint8]) -> float:
    """Return how many hashes have most likely left such registers."""
    counts = np.bincount(registers, minlength=_REST_BITS + 2).tolist()
    size = float(_REGISTER_COUNT)
    total = size * _tau(1.0 - counts[-1] / size)
    for count in reversed(counts[1:-1]):
        total = (total + count) / 2
    total += size * _sigma(counts[0] / size)
    return size * size / (2.0 * math.log(2.0)) / total


def _sigma(share: float) -> float:
    """Return what registers that are still empty count for."""
    if share == 1.0:
        return math.inf
    power, factor, total, before = share, 1.0, share, -1.0
    while total != before:
        power *= power
        before, total = total, total + power * factor
        factor *= 2
    return total


def _tau(share: float) -> float:
    """Return what registers that can rise no more count for."""
    if share in {0.0, 1.0}:
        return 0.0
    root, factor, total, before = share, 1.0, 1.0 - share, -1.0
    while total != before:
        root = math.sqrt(root)
        factor /= 2
        before, total = total, total - (1.0 - root) ** 2 * factor
    return total / 3.0
