"""Why topics could not be made is known for a while."""

from __future__ import annotations

from logstore.compat.kafka.groups.streams.creation_errors import CreationErrors


def test_an_error_expires() -> None:
    """The last one of a topic counts, until its time."""
    errors = CreationErrors()
    errors.put("a", "first", 10, 0)
    errors.put("a", "second", 20, 5)
    errors.put("b", "other", 12, 5)
    assert errors.of(["a", "b", "c"], 11) == {"a": "second", "b": "other"}
    assert errors.of(["a", "b"], 12) == {"a": "second"}
    assert errors.of(["a"], 20) == {}


def test_of_too_many_the_next_to_expire_go() -> None:
    """There is an end to what is kept."""
    errors = CreationErrors()
    for number in range(1001):
        errors.put(f"t{number}", "full", 5000 - number, 0)
    assert errors.of(["t1000"], 0) == {}
    assert errors.of(["t0", "t999"], 0) == {"t0": "full", "t999": "full"}
