"""Names that topics and groups can have, and the refusals of others."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.topics import names
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError

ILLEGAL = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


@pytest.mark.parametrize(
    "topic", ["a", "A-b_9%|", "x" * 127, "%RETRY%" + "g" * 248, "%DLQ%" + "g" * 250]
)
def test_topics_that_can_be(topic: str) -> None:
    """Letters, digits and a few signs, up to 127; retry and dead-letter topics up to 255."""
    assert names.flaw_of_topic(topic) is None


@pytest.mark.parametrize(
    ("topic", "flaw"),
    [
        ("", "The specified topic is blank."),
        (" ", "The specified topic is blank."),
        ("a b", f"The specified topic: a b, {ILLEGAL}"),
        ("ä", f"The specified topic: ä, {ILLEGAL}"),
        ("a\n", f"The specified topic: a\n, {ILLEGAL}"),
        ("x" * 128, f"The specified topic: {'x' * 128}, is longer than topic max length: 127"),
    ],
)  # fmt: skip
def test_topics_that_cannot_be(topic: str, flaw: str) -> None:
    """The refusal is Java's, word for word."""
    with pytest.raises(RefusedError) as refused:
        names.check_topic(topic)
    assert (refused.value.code, refused.value.remark) == (ResponseCode.INVALID_PARAMETER, flaw)


def test_groups_have_a_limit_of_their_own() -> None:
    """A group may have 120 characters, so that its retry topics have room."""
    assert names.flaw_of_group("g" * 120) is None
    with pytest.raises(RefusedError, match="is longer than group max length: 120"):
        names.check_group("g" * 121)
    with pytest.raises(RefusedError, match="The specified group is blank"):
        names.check_group("")
    with pytest.raises(RefusedError, match="contains illegal characters"):
        names.check_group("a.b")
