"""Each request goes to both sides; where their answers differ it is noted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.compat.rocketmq.frames import Answer
from tests.interop.drawn.pair import Pair
from tests.interop.drawn_rocketmq.excuses import excused
from tests.interop.drawn_rocketmq.plain import masked, plain
from tests.interop.drawn_rocketmq.request import Request
from tests.interop.drawn_rocketmq.side import SILENT, Side

SECONDS_MAX = 6.0
END_SECONDS = 0.6
#: so long what may not be answered is listened to
ODD_SECONDS = 0.2
#: What follows a little later in a real broker (queues, index, the name server's tables) is asked
#: for again for so long.
COMING_SECONDS = 1.5
PAUSE_SECONDS = 0.02
#: So long a request that may be let wait is listened for before the next one.
WAITING_SECONDS = 0.05
#: These change nothing: a difference in them is looked at again.
ONLY_ASK = frozenset(
    (Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE, Code.QUERY_MESSAGE, Code.QUERY_CONSUMER_OFFSET,
     Code.GET_ALL_TOPIC_CONFIG, Code.GET_BROKER_CONFIG, Code.GET_BROKER_RUNTIME_INFO,
     Code.SEARCH_OFFSET_BY_TIMESTAMP, Code.GET_MAX_OFFSET, Code.GET_MIN_OFFSET,
     Code.GET_EARLIEST_MSG_STORETIME, Code.VIEW_MESSAGE_BY_ID, Code.GET_CONSUMER_LIST_BY_GROUP,
     Code.GET_ALL_CONSUMER_OFFSET, Code.GET_ALL_DELAY_OFFSET, Code.CHECK_CLIENT_CONFIG,
     Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Code.GET_TOPIC_STATS_INFO,
     Code.GET_CONSUMER_CONNECTION_LIST, Code.GET_PRODUCER_CONNECTION_LIST, Code.GET_CONSUME_STATS,
     Code.QUERY_TOPIC_CONSUME_BY_WHO, Code.QUERY_CONSUME_TIME_SPAN,
     Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, Code.QUERY_CORRECTION_OFFSET,
     Code.VIEW_BROKER_STATS_DATA, Code.GET_BROKER_CONSUME_STATS, Code.QUERY_CONSUME_QUEUE,
     Code.GET_ALL_PRODUCER_INFO, Code.QUERY_TOPICS_BY_CONSUMER,
     Code.QUERY_SUBSCRIPTION_BY_CONSUMER, Code.GET_TOPIC_CONFIG,
     Code.GET_SUBSCRIPTIONGROUP_CONFIG, Code.QUERY_ASSIGNMENT, Code.GET_ALL_MESSAGE_REQUEST_MODE,
     Code.PEEK_MESSAGE, Code.POLLING_INFO, Code.GET_ROUTEINFO_BY_TOPIC,
     Code.GET_BROKER_CLUSTER_INFO, Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
     Code.GET_TOPICS_BY_CLUSTER, Code.GET_SYSTEM_TOPIC_LIST_FROM_NS, Code.GET_UNIT_TOPIC_LIST,
     Code.GET_HAS_UNIT_SUB_TOPIC_LIST, Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
     Code.GET_BROKER_MEMBER_GROUP, Code.QUERY_DATA_VERSION, Code.AUTH_GET_USER,
     Code.AUTH_LIST_USER, Code.AUTH_GET_ACL, Code.AUTH_LIST_ACL, Code.GET_PARENT_TOPIC_INFO,
     Code.GET_LITE_TOPIC_INFO, Code.GET_LITE_CLIENT_INFO, Code.GET_LITE_GROUP_INFO,
     Code.GET_TIMER_METRICS, Code.EXPORT_ROCKSDB_CONFIG_TO_JSON,
     Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS)
)  # fmt: skip
#: After these a real broker has its queues a moment later, and after a pop where its group goes on:
#: a pop of that moment finds less, takes less away, and cannot be asked for again; and a pull may
#: be let wait whose answer should be that nothing matches.
STORES = frozenset(
    (Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE, Code.SEND_REPLY_MESSAGE,
     Code.SEND_REPLY_MESSAGE_V2, Code.CONSUMER_SEND_MSG_BACK, Code.END_TRANSACTION,
     Code.POP_MESSAGE, Code.POP_LITE_MESSAGE)
)  # fmt: skip
DISPATCH_LINE, BEHIND_NOTHING = "dispatch", b'"dispatchBehindBytes":"0"'
#: What a broker asks of clients when something has happened; the checks of half messages are not
#: among them, whose moment each chooses.
TOLD = frozenset(
    (Code.NOTIFY_CONSUMER_IDS_CHANGED, Code.RESET_CONSUMER_CLIENT_OFFSET,
     Code.GET_CONSUMER_STATUS_FROM_CLIENT, Code.GET_CONSUMER_RUNNING_INFO,
     Code.CONSUME_MESSAGE_DIRECTLY, Code.NOTIFY_UNSUBSCRIBE_LITE, Code.PUSH_REPLY_MESSAGE_TO_CLIENT)
)  # fmt: skip
#: ... whose bodies are the broker's own
TOLD_WHOLE = frozenset((Code.RESET_CONSUMER_CLIENT_OFFSET,))


class Difference(NamedTuple):
    """A request, and what is different in the answers."""

    step: int
    asked: Request | str
    lines: list[str]

    def __str__(self) -> str:
        """Tell it in a few lines."""
        return f"step {self.step}: {self.asked}\n    " + "\n    ".join(self.lines)


class Told(NamedTuple):
    """What both said."""

    ours: Answer | str
    real: Answer | str

    @property
    def is_success(self) -> bool:
        """Tell whether both answered with success."""
        return all(isinstance(one, Answer) and one.code == 0 for one in self)

    def pair(self, find: Callable[[Answer], Any]) -> Any:
        """Return a value out of both answers, or None if one has none."""
        try:
            return Pair(*(find(one) for one in self if isinstance(one, Answer)))
        except (KeyError, IndexError, TypeError, ValueError):
            return None


class Waiting(NamedTuple):
    """A request whose answer may come later."""

    step: int
    request: Request
    line: str
    opaques: tuple[int, int]
    #: what has come so far
    answers: list[Answer | str]


class Twin:
    """Two brokers with their name servers, asked the same."""

    def __init__(
        self, ours: tuple[str, str], real: tuple[str, str], replies: Mapping[int, bytes]
    ) -> None:
        self.sides = Side(*ours, replies), Side(*real, replies)
        self.differences: list[Difference] = []
        self.steps: list[str] = []
        self._waiting: list[Waiting] = []

    def send(self, request: Request, line: str) -> tuple[int, int]:
        """Send a request to both; return the numbers of the answers to come."""
        opaques = []
        for number, side in enumerate(self.sides):
            to = side.line(line)
            opaque = to.next_opaque() if request.opaque is None else request.opaque
            to.send(request.frame(opaque, number))
            opaques.append(opaque)
        return opaques[0], opaques[1]

    def exchange(self, request: Request, line: str = "main") -> Told:
        """Put a request to both, and return what they say."""
        ours, real = self.send(request, line)
        seconds = SECONDS_MAX
        if request.is_oneway:
            seconds = PAUSE_SECONDS
        elif request.code == Code.END_TRANSACTION:
            seconds = END_SECONDS  # what is undecided is not answered
        second = self.sides[1].receive(line, real, seconds)
        told = Told(self.sides[0].receive(line, ours, seconds), second)
        if request.code in STORES:
            self._let_follow()
        return told

    def _let_follow(self) -> None:
        """Wait until a real broker has put what is stored into queues, and woken who waits."""
        deadline = time.monotonic() + COMING_SECONDS
        asked = Request(Code.GET_BROKER_RUNTIME_INFO, {})
        side = self.sides[1]
        while True:
            time.sleep(PAUSE_SECONDS)
            line = side.line(DISPATCH_LINE)
            opaque = line.next_opaque()
            line.send(asked.frame(opaque, 1))
            answer = side.receive(DISPATCH_LINE, opaque, SECONDS_MAX)
            if BEHIND_NOTHING in getattr(answer, "body", b"") or time.monotonic() > deadline:
                return

    def ask(self, request: Request, line: str = "main") -> Told:
        """Put a request to both and compare the answers; it is noted where they differ."""
        step = len(self.steps)
        self.steps.append(str(request))
        told = self.exchange(request, line)
        found = self.judged(request, told)
        deadline = time.monotonic() + COMING_SECONDS
        while found and request.code in ONLY_ASK and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
            told = self.exchange(request, line)
            found = self.judged(request, told)
        if found:
            self.differences.append(Difference(step, request, found))
        return told

    def begin(self, request: Request, line: str) -> None:
        """Put a request to both that they may let wait; `settle` looks for the answers."""
        step = len(self.steps)
        self.steps.append(f"{request} on {line}")
        opaques = self.send(request, line)
        self._waiting.append(Waiting(step, request, line, opaques, [SILENT, SILENT]))
        self.settle(WAITING_SECONDS)

    def send_bytes(
        self, data: bytes, line: str, opaque: int, request: Request, seconds: float = ODD_SECONDS
    ) -> None:
        """Send bytes to both on a connection of their own; compare what becomes of it."""
        step = len(self.steps)
        self.steps.append(str(request))
        for side in self.sides:
            side.line(line).send(data)
        second = self.sides[1].receive(line, opaque, seconds)
        first = self.sides[0].receive(line, opaque, PAUSE_SECONDS)
        if first == SILENT != second:
            first = self.sides[0].receive(line, opaque, SECONDS_MAX)
        elif second == SILENT != first:
            second = self.sides[1].receive(line, opaque, SECONDS_MAX)
        if found := self.judged(request, Told(first, second)):
            self.differences.append(Difference(step, f"{request} {data!r:.300}", found))
        for side in self.sides:
            side.hang_up(line)
        if request.code in STORES:
            self._let_follow()

    def settle(self, seconds: float = 0.0) -> None:
        """Compare what has been answered by now; who lets it wait alone is given some time."""
        for one in list(self._waiting):
            self._receive(one, seconds)
            if one.answers == [SILENT, SILENT]:
                continue
            self._receive(one, COMING_SECONDS)
            self._waiting.remove(one)
            told = Told(*one.answers)
            if (found := self.judged(one.request, told)) and told.is_success:
                # Java wakes who waits by the first message of several.
                found = self.judged(one.request, self.exchange(one.request, one.line))
            if found:
                asked = f"{one.request} on {one.line}"
                self.differences.append(Difference(one.step, asked, found))

    def _receive(self, one: Waiting, seconds: float) -> None:
        for number in (1, 0):
            if one.answers[number] == SILENT:
                side = self.sides[number]
                one.answers[number] = side.receive(one.line, one.opaques[number], seconds)

    def judged(self, request: Request, told: Told) -> list[str]:
        """Return what is different and not excused, a line each."""
        ours, real = (plain(request.code, one) for one in told)
        return excused(request, ours, real)

    def compare_told(self) -> None:
        """Compare what both asked of us by themselves."""
        deadline = time.monotonic() + COMING_SECONDS
        while (found := self._told_otherwise()) and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
        if found:
            self.differences.append(Difference(len(self.steps), "what clients are asked", found))

    def _told_otherwise(self) -> list[str]:
        sides = []
        for side in self.sides:
            side.attend()
            sides.append(
                {
                    name: sorted(
                        {
                            f"{one.code} {sorted(masked(one.fields or {}).items())} {one.flag}"
                            + (f" {one.body!r}" if one.code in TOLD_WHOLE else "")
                            for one in told
                            if one.code in TOLD
                        }
                    )
                    for name, told in side.told().items()
                }
            )
        ours, real = sides
        return [
            f"{name}: {ours.get(name)} instead of {real.get(name)}"
            for name in sorted(set(ours) | set(real))
            if ours.get(name, []) != real.get(name, [])
        ]

    def hang_up(self, line: str) -> None:
        """Close a connection to both."""
        self._waiting = [one for one in self._waiting if one.line != line]
        self.steps.append(f"hang up {line}")
        for side in self.sides:
            side.hang_up(line)

    def hang_up_everywhere(self, why: str) -> None:
        """Close all connections to both; nobody is answered any more who waits."""
        self._waiting = []
        self.steps.append(why)
        self.close()

    def close(self) -> None:
        """Hang up everywhere."""
        for side in self.sides:
            side.close()
