"""What is wrong with a pattern of topic names is told as RE2/J 1.8 tells it, which Kafka asks."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.groups.consumer.regexes import check_regex
from logstore.compat.kafka.refused_request import RefusedRequestError


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("[a", "missing closing ]"),
        ("(", "missing closing )"),
        ("a)", "regexp/syntax: internal error"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2,1}", "invalid repeat count"),
        ("[z-a]", "invalid character class range"),
        ("\\", "trailing backslash at end of expression"),
        (r"\q", "invalid escape sequence"),
        (r"\1", "invalid escape sequence"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
        ("(?z)", "invalid or unsupported Perl syntax"),
    ],
)
def test_why_a_pattern_is_refused(regex: str, reason: str) -> None:
    """With code 128."""
    with pytest.raises(RefusedRequestError) as caught:
        check_regex(regex)
    assert caught.value.code == 128
    expected = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}."
    assert str(caught.value) == expected
