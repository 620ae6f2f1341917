"""One thing that is to go wrong with requests: with which ones, how, and how often."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fnmatch import fnmatchcase
from random import Random
from typing import Any, Literal

import attrs

Action = Literal["fail", "delay", "drop", "hold"]
When = Literal["before", "after"]


@attrs.define(eq=False, kw_only=True)
class RequestFault:
    """
    A planned fault; it counts itself down.

    * ``fail`` answers with `error` (and `message`, if there is room for one)
    * ``delay`` lets `delay_ms` pass
    * ``drop`` hangs up without an answer
    * ``hold`` waits until :meth:`RequestFaults.release`

    `when` is ``before`` if the request is not to be served (or only after the wait), ``after`` if
    it is served, and only its answer is lost, late or a lie.

    It strikes requests whose API, client and topic match. These are shell patterns: of the names of
    Kafka's APIs or of RocketMQ's request codes; of Kafka's client id, or the group that a RocketMQ
    request names; of any topic in the request. Of those that match, the first `after` pass. Of the
    next ones each is struck by `chance`, as the dice of `seed` fall, until that has happened
    `times`, which is None for ever.
    """

    action: Action
    api: str
    error: str = ""
    message: str = ""
    delay_ms: float = 0
    when: When = "before"
    topic: str = "*"
    client: str = "*"
    after: int = 0
    times: int | None = 1
    chance: float = 1
    seed: int = 0
    #: given by whoever plans it
    number: int = attrs.field(default=0, init=False)
    #: how many requests matched, and how many of them were struck
    seen_count: int = attrs.field(default=0, init=False)
    struck_count: int = attrs.field(default=0, init=False)
    #: ends the waiting of those that are held
    held: list[Callable[[], None]] = attrs.field(
        factory=list[Callable[[], None]], init=False, repr=False
    )
    _dice: Random = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._dice = Random(self.seed)
        self._refuse_nonsense()

    def _refuse_nonsense(self) -> None:
        if self.action not in ("fail", "delay", "drop", "hold"):
            raise ValueError(f"no such action: {self.action!r}; there are fail, delay, drop, hold")
        if self.when not in ("before", "after"):
            raise ValueError(f"when is 'before' or 'after', not {self.when!r}")
        if (self.action == "fail") != bool(self.error):
            raise ValueError("who fails needs an error, and nobody else has one")
        if (self.action == "delay") != (self.delay_ms > 0):
            raise ValueError("a delay needs delay_ms above 0, and nothing else has one")
        if self.after < 0 or (self.times is not None and self.times < 1):
            raise ValueError("after is 0 or more, times 1 or more, or None for ever")
        if not 0 < self.chance <= 1:
            raise ValueError("chance is above 0, and 1 at most")

    @property
    def is_spent(self) -> bool:
        """Tell whether it strikes no more."""
        return self.times is not None and self.struck_count >= self.times

    def strikes(self, api: str, client: str, topics: Callable[[], Collection[str]]) -> bool:
        """Tell whether this request is struck; `topics` is asked where they matter."""
        if (
            self.is_spent
            or not fnmatchcase(api, self.api)
            or not fnmatchcase(client, self.client)
            or (self.topic != "*" and not any(fnmatchcase(name, self.topic) for name in topics()))
        ):
            return False
        self.seen_count += 1
        if self.seen_count <= self.after or (self.chance < 1 and self._dice.random() > self.chance):
            return False
        self.struck_count += 1
        return True

    def to_json(self) -> dict[str, Any]:
        """Return what it is and how often it has struck, for machines."""
        told = attrs.asdict(
            self, filter=lambda field, _: field.name not in ("held", "_dice"), recurse=False
        )
        return {**told, "held_count": len(self.held)}
