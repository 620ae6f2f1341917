"""What is made of samples: percentiles, medians, ratios round by round, and bars to be met."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

import attrs


def percentile(sorted_samples: Sequence[float], share: float) -> float:
    """
    Return the smallest sample that at least `share` (0 to 1) of all samples do not exceed.

    The nearest-rank definition: a value that was seen, never an interpolated one.
    """
    assert sorted_samples, "no samples"
    rank = math.ceil(share * len(sorted_samples))
    return sorted_samples[max(rank, 1) - 1]


def ratios_by_round(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """
    Return ours/theirs of every round that both had; samples by the round's number.

    Within a round both ran seconds apart, so that a machine that slows down over the run favours
    neither.
    """
    return [ours[number] / theirs[number] for number in ours if theirs.get(number)]


@attrs.frozen
class Bar:
    """
    A limit for one figure: a ratio to the baseline, or a value of the subject's own.

    `of` is "ratio" (subject / baseline) or "value". `sign` is how the figure must stand to `limit`.
    """

    of: Literal["ratio", "value"]
    sign: Literal[">=", "<=", "<"]
    limit: float

    def is_met_by(self, figure: float) -> bool:
        """Tell whether the figure (a ratio or a value, as `of` says) stands as it must."""
        if self.sign == ">=":
            return figure >= self.limit
        if self.sign == "<=":
            return figure <= self.limit
        return figure < self.limit

    def text(self, unit: str) -> str:
        """Return the bar as people read it: ``>= 5x``, ``<= 60 MiB``."""
        of = "x" if self.of == "ratio" else f" {unit}"
        return f"{self.sign} {self.limit:.4g}{of}"


@attrs.frozen
class Metric:
    """
    One figure of a cell: its name in the results, its unit and the bar it must meet, if any.

    One that is not shown stands in the JSON only.
    """

    name: str
    unit: str
    bar: Bar | None = None
    is_shown: bool = True


@attrs.frozen
class Row:
    """
    One figure of one cell over all rounds and targets; samples by target, then by round.

    The `subject` is held against the bar, at the side of the `baseline`. There is no subject where
    only the baseline itself is measured.
    """

    scenario: str
    cell: str
    metric: Metric
    samples: Mapping[str, Mapping[int, float]]
    subject: str | None
    baseline: str | None

    def median(self, target: str) -> float | None:
        """Return the median over the rounds of one target, None where it has no samples."""
        samples = self.samples.get(target)
        return statistics.median(samples.values()) if samples else None

    @property
    def ratios(self) -> list[float]:
        """Subject to baseline, round by round; empty where one of them is missing."""
        if self.baseline is None or self.subject is None:
            return []
        return ratios_by_round(
            self.samples.get(self.subject, {}), self.samples.get(self.baseline, {})
        )

    @property
    def ratio(self) -> float | None:
        """The median of the ratios."""
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def verdict(self) -> bool | None:
        """Whether the bar is met; None without a bar or without the figure it speaks of."""
        bar = self.metric.bar
        if bar is None or self.subject is None:
            return None
        figure = self.ratio if bar.of == "ratio" else self.median(self.subject)
        return None if figure is None else bar.is_met_by(figure)
