"""What statistics are made of: parts put together say what the whole says."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.tools.inspection.stats import key_hash
from logstore.tools.inspection.stats.distinct_keys import DistinctKeys
from logstore.tools.inspection.stats.key_hash import hash_of, key_hashes
from logstore.tools.inspection.stats.partition_stats import PartitionStats
from logstore.tools.inspection.stats.rate import BUCKETS_MAX, Rate
from logstore.tools.inspection.stats.rendering import sparkline
from logstore.tools.inspection.stats.size_spread import SizeSpread

times = st.lists(st.integers(0, 2**42), max_size=40)


def rate_of(moments: list[int]) -> Rate:
    """Return the rate of records of ten bytes each."""
    rate = Rate()
    rate.add(np.array(moments, dtype=np.int64), np.full(len(moments), 10.0))
    return rate


@given(times, times)
def test_two_rates_become_one(one: list[int], other: list[int]) -> None:
    """Every record stays in the bucket of its time, as wide as the wider of the two."""
    rate = rate_of(one)
    rate.merge(rate_of(other))

    assert sum(rate.records.values()) == len(one) + len(other)
    assert sum(rate.size_bytes.values()) == 10 * (len(one) + len(other))
    assert set(rate.records) == {moment // rate.width_ms for moment in one + other}


def test_a_rate_never_has_more_buckets_than_it_may() -> None:
    """A year of seconds becomes weeks or days, and no record is lost."""
    rate = rate_of(list(range(0, 365 * 86_400_000, 3_600_000)))

    assert len(rate.records) <= BUCKETS_MAX
    assert sum(rate.records.values()) == 365 * 24
    assert rate.narrowed_to(60).bucket_count <= 60


@given(st.lists(st.binary(max_size=20)))
def test_the_compiled_hash_is_that_of_one_key(keys: list[bytes]) -> None:
    """FNV-1a of each key, whether numba is there or not: sketches of both go together."""
    data = np.frombuffer(b"".join(keys), dtype=np.uint8)
    bounds = np.cumsum([0, *map(len, keys)]).astype(np.int32)

    found = key_hashes(data, bounds).view(np.uint64).tolist()

    assert found == [hash_of(key) for key in keys]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_hash, "_njit", None)
        assert key_hashes(data, bounds).view(np.uint64).tolist() == found
    assert hash_of(b"foobar") == 0x85944171F73967E8  # of the authors' own test suite


def test_sketches_travel_and_join() -> None:
    """Two halves that were pickled say what one that saw all says, within its error."""
    halves = [DistinctKeys(), DistinctKeys()]
    halves[0].add(np.arange(0, 60_000, dtype=np.int64))
    halves[1].add(np.arange(40_000, 100_000, dtype=np.int64))
    spreads = [SizeSpread(), SizeSpread()]
    spreads[0].add(np.arange(1, 500, dtype=np.int64))
    spreads[1].add(np.arange(500, 1_000, dtype=np.int64))

    keys, spread = pickle.loads(pickle.dumps((halves[0], spreads[0])))  # noqa: S301 - our own
    keys.merge(pickle.loads(pickle.dumps(halves[1])))  # noqa: S301
    spread.merge(spreads[1])

    assert keys.count() == pytest.approx(100_000, rel=0.05)
    assert spread.quantile(0.5) == pytest.approx(500, rel=0.011)
    assert spread.largest == 999


@pytest.mark.parametrize("count", [10, 300, 1_584, 5_000, 60_000])
def test_keys_are_counted_alike_in_any_order(count: int) -> None:
    """However the keys were cut and joined: the same figure."""
    keys = np.arange(count, dtype=np.int64) * 7_919
    found: set[int] = set()
    for cut in (0, 1, count // 3, count - 1):
        one, other = DistinctKeys(), DistinctKeys()
        one.add(keys[cut:][::-1])
        other.add(keys[: cut + count // 5])
        other.merge(one)
        found.add(pickle.loads(pickle.dumps(other)).count())  # noqa: S301 - our own
    whole = DistinctKeys()
    whole.add(keys)

    assert found == {whole.count()}
    assert whole.count() == pytest.approx(count, rel=0.05)


def test_few_keys_are_counted_exactly_and_many_without_a_bias() -> None:
    """Up to 512 to the last one; beyond, also of keys alike, the error is 1.6 percent at random."""
    for count in (0, 1, 2, 511, 512):
        few = DistinctKeys()
        for _ in range(3):
            few.add(np.arange(count, dtype=np.int64))
        assert few.count() == count
    errors: list[float] = []
    for start in range(40):
        keys = DistinctKeys()
        keys.add(np.array([hash_of(b"%d-%d" % (start, i)) for i in range(2_000)]).view(np.int64))
        errors.append(keys.count() / 2_000 - 1)
    assert np.std(errors) < 0.02
    assert abs(np.mean(errors)) < 0.01
    full = DistinctKeys(registers=np.full(4_096, 52, dtype=np.uint8))
    assert full.count() > 2**58


def test_statistics_of_one_partition_stay_small() -> None:
    """What a task sends back does not grow with what it has read."""
    stats = PartitionStats()
    for step in range(20):
        numbers = np.arange(step * 10_000, (step + 1) * 10_000, dtype=np.int64)
        stats.add_records(numbers, numbers * 977, np.full(10_000, 100.0), numbers)
        stats.entry_sizes.add(numbers + 1)

    assert stats.record_count == 200_000
    assert len(pickle.dumps(stats)) < 16_000


@given(st.lists(st.integers(1, 2**31), min_size=1, max_size=60), st.integers(0, 60))
@example([156, 158], 0)
def test_sizes_are_spread_alike_in_any_order(sizes: list[int], cut: int) -> None:
    """Parts say exactly what the whole says, and that is right to one percent, rounded."""
    whole, part, rest = SizeSpread(), SizeSpread(), SizeSpread()
    whole.add(np.array(sizes, dtype=np.int64))
    part.add(np.array(sizes[cut:], dtype=np.int64))
    rest.add(np.array(sizes[:cut][::-1], dtype=np.int64))
    part.merge(rest)

    for rank in (0.01, 0.5, 0.99, 1.0):
        exact = sorted(sizes)[max(0, -(-int(rank * 100) * len(sizes) // 100) - 1)]
        assert part.quantile(rank) == whole.quantile(rank)
        assert whole.quantile(rank) == pytest.approx(exact, abs=exact * 0.0102 + 0.5)


@given(times, st.integers(0, 40))
def test_rates_are_alike_in_any_order(moments: list[int], cut: int) -> None:
    """Buckets are as wide as all of the records need, however they came."""
    rate = rate_of(moments[cut:])
    rate.merge(rate_of(moments[:cut]))

    assert rate == rate_of(moments)


def test_a_sparkline_shows_something_for_anything() -> None:
    """The largest is full, the smallest still seen, nothing is a blank."""
    assert sparkline([0, 1, 500, 1_000]) == " ▁▄█"
