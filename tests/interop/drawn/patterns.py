"""Members of consumer groups ask for topics by patterns, as RE2 reads them or does not."""

from __future__ import annotations

import time
from typing import Any

from tests.interop.drawn.world import World

#: A real broker looks a pattern up beside the heartbeat that brings it.
_SECONDS_MAX = 5.0
#: what comes behind the session's own prefix
TAILS = (
    ".*", "[ab]", "(a|b|c)", "[[:alpha:]]", r"\pL", r"\p{Ll}", r"\P{Lu}", r"\x61", r"\x{62}",
    r"a\z",
    "(?P<n>a)", "(?<n>b)", "(?:a|b)", "[^a-c]", "a{1,2}", "a??", r"\d*[a-g]", r"\w", r"\D",
    r"\Qa\E",
    "(?i)[A-C]", "(?i:A)|B", "(?i)[^A]", "(?U)a+", "(?s).", "(?m)^a$", "[a]|[b]|c", "a|", r"\141",
    "[[:^upper:]]", "[]a]", "[a-]", r"[\w-]", r"[^\d]", "(?i)a|B", "((a))?", r"\Ba", r".\b",
    "a{,2}",
    "{", "a{0}.", "(?-i)a", "(?i-s:A)", r"(?i)\p{Lu}", "$a", "^",
)  # fmt: skip
#: what RE2 refuses, or not
WHOLE = (
    "(", "[a", "*a", "a**", "a++", ")", "(?=a)", r"(a)\1", r"\C", r"\Z", "a{2,1}", "a{1001}",
    "[[:foo:]]", r"\8", "\\", "[\\", "(?P=n)", "(?P<n>a)(?P<n>b)", "(?P<a-b>x)", "(?P<>x)", "(?P<x",
    "(?>a)", "(?x)a", "[b-a]", r"\p{Foo}", r"\p", r"\p{L", "(?i-)a", "(?#c)", "|*", "(*a)", "[^]",
    "a{1}{2}", "(?", "(?i", "(?P", r"\x{}", r"\x{110000}", r"\xg", r"\_", r"\-", "]", "}", "a{01}",
    "x{1,1001}", "(?i)*", "(|a)*", "[a-\\d]", "[[:alpha:]", "[a-[:digit:]]", r"[\Q]", r"\07", r"\E",
    "(((", "())", "a|*", "^*", "a$b", "(?:", r"\pX", r"\p{^L}", r"\P{^L}", "(?iU)a", "(?ii)a",
    "(?--i)a",
)  # fmt: skip


def subscribe(world: World) -> None:
    """Join a new group with a pattern, see what is assigned, and leave."""
    number = len(world.twin.steps)
    group = f"{world.prefix}-pattern{number}"
    tail = world.chance.choice(TAILS)
    pattern = f"{world.prefix}-{tail}" if "|" not in tail else f"{world.prefix}-(?:{tail})"
    if world.likely(0.4):
        pattern = world.chance.choice(WHOLE)
    body: dict[str, Any] = {
        "GroupId": group,
        "MemberId": "m",
        "MemberEpoch": 0,
        "RebalanceTimeoutMs": 60_000,
        "TopicPartitions": [],
        "SubscribedTopicNames": [],
        "SubscribedTopicRegex": pattern,
    }
    answer = world.twin.exchange("ConsumerGroupHeartbeat", 1, body, "patterns")
    codes = [(side["ErrorCode"], side["ErrorMessage"]) for side in answer]
    world.twin.note("ConsumerGroupHeartbeat", pattern, codes)
    if any(code for code, _ in codes):
        return
    world.twin.note("assigned by a pattern", pattern, _assigned(world, group))
    body = {"GroupId": group, "MemberId": "m", "MemberEpoch": -1}
    world.twin.exchange("ConsumerGroupHeartbeat", 1, body, "patterns")


def _assigned(world: World, group: str) -> list[Any]:
    """Return what either assigns, once they have made up their minds."""
    found: list[Any] = [None, None]
    deadline = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < deadline:
        for side, line in enumerate(world.twin.line("patterns")):
            line.send(
                "ConsumerGroupHeartbeat", 1, {"GroupId": group, "MemberId": "m", "MemberEpoch": 0}
                | {"RebalanceTimeoutMs": 60_000, "TopicPartitions": [], "SubscribedTopicNames": []},
            )  # fmt: skip
            told = line.receive(_SECONDS_MAX)
            if isinstance(told, str):
                return [told]
            parts = told["Assignment"]["TopicPartitions"]
            names = {
                (topic.id[side], topic.name)
                for topic in world.topics.values()
                if isinstance(topic.id, tuple)
            }
            by_id = dict(names)
            # the epoch, too: where nothing matches it alone tells that the pattern was looked up
            found[side] = (
                told["MemberEpoch"],
                sorted(
                    (by_id.get(one["TopicId"], "another"), sorted(one["Partitions"]))
                    for one in parts
                ),
            )
        if found[0] == found[1]:
            break
        time.sleep(0.05)
    return found
