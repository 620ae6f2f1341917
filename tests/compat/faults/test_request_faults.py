"""Faults as they are planned: who meets which, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.faults.request_fault import RequestFault
from logstore.compat.faults.request_faults import RequestFaults


@pytest.fixture
def faults() -> RequestFaults:
    """Return a place to plan faults with two requests and an error."""
    faults = RequestFaults()
    faults.know(["Put", "Get"], ["BROKEN"])
    return faults


def strikes(faults: RequestFaults, count: int, api: str = "Put") -> list[bool]:
    """Return which of so many requests are struck."""
    return [faults.strike(api, "c", lambda: ("t",)) is not None for _ in range(count)]


def test_once_unless_told_otherwise(faults: RequestFaults) -> None:
    """The first request that matches."""
    faults.drop("Put")
    assert strikes(faults, 1, "Get") == [False]
    assert strikes(faults, 3) == [True, False, False]


def test_the_nth_request(faults: RequestFaults) -> None:
    """`after` pass, then `times` are struck."""
    faults.drop("*", after=2, times=2)
    assert strikes(faults, 6) == [False, False, True, True, False, False]


def test_for_ever(faults: RequestFaults) -> None:
    """Until it is cancelled."""
    fault = faults.drop("Put", times=None)
    assert strikes(faults, 5) == [True] * 5
    faults.cancel(fault)
    assert strikes(faults, 2) == [False, False]


def test_dice_fall_the_same_each_time(faults: RequestFaults) -> None:
    """A seed is a run."""

    def run(seed: int) -> list[bool]:
        faults.clear()
        faults.drop("Put", times=None, chance=0.5, seed=seed)
        return strikes(faults, 64)

    assert run(1) == run(1) != run(2)
    assert 16 < sum(run(1)) < 48


def test_the_oldest_strikes_first(faults: RequestFaults) -> None:
    """And those behind it when it is spent."""
    first, second = faults.drop("Put"), faults.fail("Put", "BROKEN")
    assert (first.number, second.number) == (1, 2)
    assert faults.strike("Put", "c", tuple) is first
    assert faults.strike("Put", "c", tuple) is second


def test_topics_are_looked_up_only_where_they_matter(faults: RequestFaults) -> None:
    """It takes a request to be read."""

    def unread() -> tuple[str, ...]:
        raise AssertionError("nobody asked for topics")

    faults.drop("Get", topic="t")
    faults.drop("Put", client="other", topic="t")
    assert faults.strike("Put", "c", unread) is None
    faults.drop("Put")
    assert faults.strike("Put", "c", unread) is not None


def test_releasing_ends_the_holding(faults: RequestFaults) -> None:
    """Whoever is held goes on, in order; whatever is planned beside it stays."""
    went: list[int] = []
    fault, other = faults.hold("Put", times=None), faults.drop("Get")
    fault.held += [lambda: went.append(1), lambda: went.append(2)]
    assert fault.to_json()["held_count"] == 2
    faults.release()
    assert went == [1, 2]
    assert faults.planned == (other,)


def test_release_runs_where_requests_are_served(faults: RequestFaults) -> None:
    """In the server's thread, whoever asks for it."""
    calls: list[str] = []

    def run(work: Any) -> Any:
        calls.append("there")
        return work()

    faults.run = run
    faults.hold("Put").held.append(lambda: calls.append("went on"))
    faults.clear()
    assert calls == ["there", "went on"]


@pytest.mark.parametrize(
    ("fields", "flaw"),
    [
        ({"action": "explode"}, "no such action: 'explode'"),
        ({"action": "drop", "when": "during"}, "when is 'before' or 'after', not 'during'"),
        ({"action": "fail"}, "who fails needs an error"),
        ({"action": "drop", "error": "BROKEN"}, "nobody else has one"),
        ({"action": "delay"}, "a delay needs delay_ms above 0"),
        ({"action": "hold", "delay_ms": 5}, "nothing else has one"),
        ({"action": "drop", "after": -1}, "after is 0 or more"),
        ({"action": "drop", "times": 0}, "times 1 or more"),
        ({"action": "drop", "chance": 0}, "chance is above 0"),
        ({"action": "drop", "chance": 1.5}, "and 1 at most"),
    ],
)
def test_nonsense_is_refused(fields: dict[str, Any], flaw: str) -> None:
    """With what is wrong about it."""
    with pytest.raises(ValueError, match=flaw):
        RequestFault(api="Put", **fields)


def test_what_can_never_strike_is_refused(faults: RequestFaults) -> None:
    """With the likeliest meant."""
    with pytest.raises(ValueError, match="no request is called 'Putt'; did you mean Put"):
        faults.drop("Putt")
    with pytest.raises(ValueError, match="no error is called 'BROKE'; did you mean BROKEN"):
        faults.fail("Put", "BROKE")
    assert faults.planned == ()


def test_machines_are_told_all() -> None:
    """What was planned, and what became of it."""
    fault = RequestFault(action="delay", api="Put", delay_ms=5, topic="t*")
    assert fault.strikes("Put", "", lambda: ("tt",))
    assert fault.to_json() == {
        "action": "delay", "api": "Put", "error": "", "message": "", "delay_ms": 5,
        "when": "before", "topic": "t*", "client": "*", "after": 0, "times": 1, "chance": 1,
        "seed": 0, "number": 0, "seen_count": 1, "struck_count": 1, "held_count": 0,
    }  # fmt: skip
