"""Each question goes to both brokers; where their answers differ it is noted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.interop.drawn.comparison import Comparison, Pair, of_side
from tests.interop.drawn.line import Line
from tests.interop.drawn.orders import SHUFFLED
from tests.interop.drawn.schemas import apis

SECONDS_MAX = 15.0
#: A real broker answers these of a state that comes a little after the answer which announced it.
ONLY_ASK = frozenset(
    ("Metadata", "ListOffsets", "OffsetForLeaderEpoch", "DescribeTopicPartitions",
     "DescribeProducers")
)  # fmt: skip
COMING_SECONDS = 1.0


class Difference(NamedTuple):
    """A question, and what is different in the answers."""

    step: int
    api: str
    version: int
    asked: Any
    lines: list[str]

    def __str__(self) -> str:
        """Tell it in a few lines."""
        return f"step {self.step}: {self.api} v{self.version} {self.asked}\n    " + "\n    ".join(
            self.lines
        )


class Answer(NamedTuple):
    """What both said."""

    ours: Any
    real: Any

    @property
    def is_told(self) -> bool:
        """Tell whether both answered with a message."""
        return isinstance(self.ours, dict) and isinstance(self.real, dict)

    def made(self, find: Callable[[Any], Any]) -> Any:
        """Return a value out of both answers, or None if one has none."""
        try:
            found = Pair(find(self.ours), find(self.real))
        except (KeyError, IndexError, TypeError):
            return None
        return found

    def get(self, find: Callable[[Any], Any], default: Any = None) -> Any:
        """Return a value out of the real one's answer."""
        try:
            return find(self.real)
        except (KeyError, IndexError, TypeError):
            return default


class Twin:
    """Two brokers, asked the same."""

    def __init__(self, ours: str, real: str) -> None:
        self.bootstraps = (ours, real)
        self.comparison = Comparison(SHUFFLED)
        self.differences: list[Difference] = []
        self.steps: list[str] = []
        self._lines: dict[str, tuple[Line, Line]] = {}

    def line(self, name: str) -> tuple[Line, Line]:
        """Return the connections of that name, new ones if there are none."""
        if name not in self._lines:
            ours, real = (Line(bootstrap) for bootstrap in self.bootstraps)
            self._lines[name] = (ours, real)
        return self._lines[name]

    def ask(self, api: str, version: int, body: dict[str, Any], line: str = "main") -> Answer:
        """Put a question to both and compare the answers; it is noted where they differ."""
        step = len(self.steps)
        self.steps.append(f"{api} v{version} {body}")
        answer = self.exchange(api, version, body, line)
        found = self._judged(api, answer)
        deadline = time.monotonic() + COMING_SECONDS
        while found and answer.is_told and is_only_asked(api, body) and time.monotonic() < deadline:
            time.sleep(0.02)
            answer = self.exchange(api, version, body, line)
            found = self._judged(api, answer)
        if found:
            self.differences.append(Difference(step, api, version, body, found))
        if not answer.is_told:
            for one in self._lines.pop(line):
                one.close()
        return answer

    def exchange(self, api: str, version: int, body: Any, line: str = "main") -> Answer:
        """Put a question to both, and return what they say."""
        lines = self.line(line)
        for side, one in enumerate(lines):
            one.send(api, version, of_side(body, side))
        real = lines[1].receive(SECONDS_MAX)
        return Answer(lines[0].receive(SECONDS_MAX), real)

    def send(self, api: str, version: int, body: dict[str, Any], line: str = "main") -> None:
        """Send a question that has no answer."""
        self.steps.append(f"{api} v{version} {body} (no answer)")
        for side, one in enumerate(self.line(line)):
            one.send(api, version, of_side(body, side))

    def _judged(self, api: str, answer: Answer) -> list[str]:
        schema = apis()[api].response
        return self.comparison.differences(schema, answer.ours, answer.real)

    def close(self) -> None:
        """Hang up everywhere."""
        for lines in self._lines.values():
            for one in lines:
                one.close()


def is_only_asked(api: str, body: Any) -> bool:
    """Tell whether a question changes nothing, and so may be put again."""
    if api == "Fetch":
        return bool(body.get("SessionEpoch", -1) == -1)
    return api in ONLY_ASK
