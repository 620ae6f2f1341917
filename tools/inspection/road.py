"""The road to an answer: its steps, each as fields and as a sentence."""

from __future__ import annotations

from typing import TypeAlias

import attrs

Fields: TypeAlias = dict[str, object]


@attrs.frozen
class Step:
    """One step on the way: its name, what was found as fields, and the same as a sentence."""

    name: str
    fields: Fields
    sentence: str


@attrs.define
class Explanation:
    """
    The way to an answer.

    `outcome` is one of found, marker, hole, below-start, at-end, above-end, too-young, missing,
    damaged.
    """

    steps: list[Step] = attrs.field(factory=list[Step])
    outcome: str = "found"
    verdict: str = ""

    def add(self, name: str, fields: Fields, sentence: str) -> None:
        """Take one more step."""
        self.steps.append(Step(name, fields, sentence))

    def end(self, outcome: str, verdict: str) -> Explanation:
        """Say how it ended."""
        self.outcome, self.verdict = outcome, verdict
        return self
