"""Kafka's combiner of state batches and ours, asked the same."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from logstore.compat.kafka.share_state.persister import DeliveryState, StateBatch
from logstore.compat.kafka.share_state.state_batches import combined
from tests.interop.java_programs import kafka_program

pytestmark = pytest.mark.interop

ASKED = Path(__file__).with_name("StateBatches.java")
QUESTIONS = 4000


def batches(rng: random.Random) -> list[StateBatch]:
    """Return batches anywhere between 0 and 40, in no order."""
    found: list[StateBatch] = []
    for _ in range(rng.choice([0, 1, 2, 5, 12])):
        first = rng.randrange(30)
        state, count = rng.choice(list(DeliveryState)), rng.choice([1, 1, 2, 3])
        found.append(StateBatch(first, first + rng.choice([0, 0, 3, 9]), state, count))
    return found


def shown(some: Iterable[StateBatch]) -> str:
    """Return batches as questions and answers have them."""
    return " ".join(",".join(str(int(number)) for number in one) for one in some)


def test_the_same_batches_are_left() -> None:
    """Whatever is laid over whatever, both leave the same batches, cut in the same places."""
    rng = random.Random(932)
    questions: list[str] = []
    answers: list[str] = []
    for _ in range(QUESTIONS):
        start, known, changed = rng.choice([-1, 0, 7, 20, 50]), batches(rng), batches(rng)
        questions.append(f"{start}|{shown(known)}|{shown(changed)}")
        answers.append(shown(combined(known, changed, start)))
    done = subprocess.run(
        kafka_program(ASKED), input="\n".join(questions) + "\n",
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == QUESTIONS
    for asked, ours, theirs in zip(questions, answers, told, strict=True):
        assert ours == theirs, asked
