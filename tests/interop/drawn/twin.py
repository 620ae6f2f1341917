"""Each question goes to both brokers; where their answers differ it is noted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.interop.drawn.comparison import Comparison, without_chance
from tests.interop.drawn.line import SILENT, Line
from tests.interop.drawn.orders import SHUFFLED
from tests.interop.drawn.pair import Pair, of_side
from tests.interop.drawn.schemas import apis

SECONDS_MAX = 15.0
#: A real broker answers these of a state that comes a little after the answer which announced it.
ONLY_ASK = frozenset(
    ("Metadata", "ListOffsets", "OffsetForLeaderEpoch", "DescribeTopicPartitions",
     "DescribeProducers", "DescribeTransactions", "ListTransactions", "ShareGroupDescribe",
     "OffsetFetch", "DescribeConfigs", "ListConfigResources", "DescribeClientQuotas",
     "DescribeUserScramCredentials", "DescribeAcls", "DescribeLogDirs", "ListGroups",
     "DescribeCluster", "DescribeQuorum", "DescribeShareGroupOffsets", "StreamsGroupDescribe",
     "ReadShareGroupStateSummary", "DescribeDelegationToken")
)  # fmt: skip
COMING_SECONDS = 5.0
CONCURRENT_TRANSACTIONS = 51
#: So long a question that may wait is listened for before the next one is asked.
WAITING_SECONDS = 0.1


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


class Waiting(NamedTuple):
    """A question whose answer may have to wait for what others do."""

    step: int
    api: str
    version: int
    body: dict[str, Any]
    learn: Callable[[Answer], None] | None
    #: what has come so far
    answers: list[Any]


class Twin:
    """Two brokers, asked the same; by other listeners on lines that have their names."""

    def __init__(
        self, ours: str, real: str, listeners: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self.bootstraps = (ours, real)
        self._listeners = listeners or {}
        self.comparison = Comparison(SHUFFLED)
        self.differences: list[Difference] = []
        self.steps: list[str] = []
        self._lines: dict[str, tuple[Line, Line]] = {}
        self._waiting: dict[str, Waiting] = {}

    def line(self, name: str) -> tuple[Line, Line]:
        """Return the connections of that name, new ones if there are none."""
        if name not in self._lines:
            bootstraps = self._listeners.get(name.partition(" ")[0], self.bootstraps)
            ours, real = (Line(bootstrap) for bootstrap in bootstraps)
            self._lines[name] = (ours, real)
        return self._lines[name]

    def ask(self, api: str, version: int, body: dict[str, Any], line: str = "main") -> Answer:
        """Put a question to both and compare the answers; it is noted where they differ."""
        step = len(self.steps)
        self.steps.append(f"{api} v{version} {body}")
        answer = self.exchange(api, version, body, line)
        answer = self._done(api, version, body, line, answer)
        found = self._judged(api, answer)
        deadline = time.monotonic() + COMING_SECONDS
        while found and answer.is_told and is_only_asked(api, body) and time.monotonic() < deadline:
            time.sleep(0.02)
            answer = self.exchange(api, version, body, line)
            found = self._judged(api, answer)
        if found:
            self.differences.append(Difference(step, api, version, body, found))
        if not answer.is_told:
            self.hang_up(line)
        return answer

    def _done(
        self, api: str, version: int, body: dict[str, Any], line: str, answer: Answer
    ) -> Answer:
        """Ask the real one again while it is still about what ours does at once."""
        deadline = time.monotonic() + COMING_SECONDS
        while is_unfinished(answer.real) and not is_unfinished(answer.ours):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
            real = self.line(line)[1]
            real.send(api, version, of_side(body, 1))
            answer = Answer(answer.ours, real.receive(SECONDS_MAX))
        return answer

    def exchange(self, api: str, version: int, body: Any, line: str = "main") -> Answer:
        """Put a question to both, and return what they say."""
        lines = self.line(line)
        for side, one in enumerate(lines):
            one.send(api, version, of_side(body, side))
        real = lines[1].receive(SECONDS_MAX)
        return Answer(lines[0].receive(SECONDS_MAX), real)

    def ask_together(self, questions: list[tuple[str, int, dict[str, Any]]], line: str) -> None:
        """Put questions to both, all at once, and compare the answers one by one."""
        lines = self.line(line)
        for side, one in enumerate(lines):
            of_one = [(api, version, of_side(body, side)) for api, version, body in questions]
            one.send_together(of_one)
        for number, (api, version, body) in enumerate(questions):
            step = len(self.steps)
            self.steps.append(f"{api} v{version} {body} ({number} of {len(questions)} together)")
            real = lines[1].receive(SECONDS_MAX)
            answer = Answer(lines[0].receive(SECONDS_MAX), real)
            if found := self._judged(api, answer):
                self.differences.append(Difference(step, api, version, body, found))
            if not answer.is_told:
                self.hang_up(line)
                return

    def ask_frame(self, data: Any, line: str) -> Answer:
        """Put bytes to both that are no question, and compare those that come back."""
        lines = self.line(line)
        for side, one in enumerate(lines):
            one.send_frame(of_side(data, side))
        real = lines[1].receive_frame(SECONDS_MAX)
        answer = Answer(lines[0].receive_frame(SECONDS_MAX), real)
        self.note("(bytes)", data, [without_chance(one) for one in answer])
        if isinstance(answer.ours, str) or isinstance(answer.real, str):
            self.hang_up(line)
        return answer

    def has_line(self, line: str) -> bool:
        """Tell whether there are connections of that name."""
        return line in self._lines

    def hang_up(self, line: str) -> None:
        """Close the connections of that name, if there are any."""
        for one in self._lines.pop(line, ()):
            one.close()

    def note(self, api: str, body: Any, answers: list[Any]) -> None:
        """Compare what somebody has found in both answers himself."""
        step = len(self.steps)
        self.steps.append(f"{api} {body}")
        if answers[0] != answers[1]:
            told = f"{answers[0]!r} instead of {answers[1]!r}"
            self.differences.append(Difference(step, api, -1, body, [told]))

    def send(self, api: str, version: int, body: dict[str, Any], line: str = "main") -> None:
        """Send a question that has no answer."""
        self.steps.append(f"{api} v{version} {body} (no answer)")
        for side, one in enumerate(self.line(line)):
            one.send(api, version, of_side(body, side))

    def begin(
        self,
        api: str,
        version: int,
        body: dict[str, Any],
        line: str,
        learn: Callable[[Answer], None] | None = None,
    ) -> None:
        """Put a question to both; if they let it wait, `settle` looks for the answers."""
        step = len(self.steps)
        self.steps.append(f"{api} v{version} {body}")
        for side, one in enumerate(self.line(line)):
            one.send(api, version, of_side(body, side))
        self._waiting[line] = Waiting(step, api, version, body, learn, [SILENT, SILENT])
        self.settle(WAITING_SECONDS)

    def is_waiting(self, line: str) -> bool:
        """Tell whether a question of this line has no answer yet."""
        return line in self._waiting

    def settle(self, seconds: float = 0.0) -> None:
        """Compare what has been answered by now; who lets it wait alone is given some time."""
        for name, one in list(self._waiting.items()):
            lines = self._lines[name]
            answers = one.answers
            for side in (1, 0):
                if answers[side] == SILENT:
                    answers[side] = lines[side].receive(seconds)
            if answers == [SILENT, SILENT]:
                continue
            for side in (1, 0):
                if answers[side] == SILENT:
                    answers[side] = lines[side].receive(COMING_SECONDS)
            del self._waiting[name]
            answer = Answer(*answers)
            if found := self._judged(one.api, answer):
                asked = f"{one.body} on {name}"
                self.differences.append(Difference(one.step, one.api, one.version, asked, found))
            if not answer.is_told:
                self.hang_up(name)
            if one.learn is not None:
                one.learn(answer)

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


def is_unfinished(answer: Any) -> bool:
    """Tell whether an answer says anywhere that a transaction is still being ended."""
    if isinstance(answer, dict):
        return any(
            one == CONCURRENT_TRANSACTIONS if name.endswith("ErrorCode") else is_unfinished(one)
            for name, one in answer.items()
        )
    return isinstance(answer, list) and any(map(is_unfinished, answer))
