"""What the benchmark makes of samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.tools.bench.figures import Bar, Metric, Row, percentile, ratios_by_round


def row(
    bar: Bar | None,
    ours: list[float],
    kafka: list[float],
    *,
    subject: str | None = "ours",
    baseline: str | None = "kafka",
) -> Row:
    """Return a row with these samples."""
    samples = {"ours": ours, "kafka": kafka}
    present = {name: dict(enumerate(values, 1)) for name, values in samples.items() if values}
    return Row("scenario", "cell", Metric("rate", "MB/s", bar), present, subject, baseline)


def test_percentiles_are_values_that_were_seen() -> None:
    """Of 1 to 100, p50 is 50, p99 is 99, and the ends are the ends."""
    samples = [float(value) for value in range(1, 101)]
    assert percentile(samples, 0.5) == 50
    assert percentile(samples, 0.99) == 99
    assert percentile(samples, 1) == 100
    assert percentile(samples, 0) == 1
    assert percentile([7.0], 0.99) == 7


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0, 1))
def test_a_percentile_is_the_smallest_sample_that_covers_its_share(
    samples: list[float], share: float
) -> None:
    """At least that share of the samples is no greater, and no smaller sample does as well."""
    samples.sort()
    found = percentile(samples, share)
    assert sum(sample <= found for sample in samples) >= share * len(samples)
    smaller = [sample for sample in samples if sample < found]
    assert len(smaller) < share * len(samples) or not smaller


def test_ratios_are_taken_within_each_round() -> None:
    """A machine that slows down to a tenth after the first round changes no ratio."""
    slowing = row(None, [100, 20, 10], [50, 10, 5])
    assert (slowing.ratios, slowing.ratio) == ([2, 2, 2], 2)
    assert row(None, [30, 10, 90], [10, 10, 10]).ratio == 3


def test_rounds_that_only_one_had_do_not_count() -> None:
    """A ratio needs both; without any common round there is none."""
    assert ratios_by_round({1: 1000, 2: 4}, {2: 2, 3: 1}) == [2]
    assert ratios_by_round({1: 4, 2: 9}, {1: 0, 2: 3}) == [3]
    assert row(None, [4], []).ratio is None


@pytest.mark.parametrize(
    ("bar", "met", "missed", "text"),
    [
        (Bar("ratio", ">=", 1.3), 1.3, 1.29, ">= 1.3x"),
        (Bar("ratio", "<=", 2 / 3), 0.66, 0.67, "<= 0.6667x"),
        (Bar("value", "<", 350), 349.9, 350, "< 350 MB/s"),
    ],
)
def test_a_bar_knows_which_side_is_good(bar: Bar, met: float, missed: float, text: str) -> None:
    """Each sign has its good side, and the bar is shown as it is meant."""
    assert bar.is_met_by(met)
    assert not bar.is_met_by(missed)
    assert bar.text("MB/s") == text


def test_a_row_is_judged_by_its_ratio_or_its_value() -> None:
    """The same samples pass a bar on the ratio and miss one on the value."""
    samples = ([60.0, 80.0, 70.0], [30.0, 40.0, 35.0])
    by_ratio = row(Bar("ratio", ">=", 2), *samples)
    assert (by_ratio.ratio, by_ratio.verdict) == (2, True)
    by_value = row(Bar("value", "<", 70), *samples)
    assert (by_value.median("ours"), by_value.verdict) == (70, False)


def test_no_verdict_without_what_it_speaks_of() -> None:
    """No bar, no baseline, no subject or no samples: nothing is said."""
    bar = Bar("ratio", ">=", 2)
    assert row(None, [1], [1]).verdict is None
    assert row(bar, [1], [], baseline=None).verdict is None
    assert row(Bar("value", "<", 9), [], [1], subject=None).verdict is None
    assert row(Bar("value", "<", 9), [], [1]).verdict is None
    assert row(bar, [], [1]).verdict is None
