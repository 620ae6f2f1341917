"""
Patterns of topic names: what members subscribe to with one, and when that is looked up again.

A pattern must match a whole name. Kafka reads patterns by the rules of RE2; here they are read by
Python's, which know more (a reference back, a look ahead) and do not promise to be fast.

A real broker looks patterns up aside and tells members in a later heartbeat; here it is done at
once.

Source: ``maybeUpdateRegularExpressions`` of ``GroupMetadataManager``, ``TopicRegexResolver``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.records import ResolvedRegex
from logstore.compat.kafka.refused_request import RefusedRequestError


def check_regex(regex: str) -> None:
    """
    Refuse what is no pattern.

    Raises:
        RefusedRequestError: 128, with the reason.

    """
    try:
        re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise RefusedRequestError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from error


def resolved(
    members: Iterable[ConsumerMember],
    before: Mapping[str, ResolvedRegex],
    topic_names: frozenset[str],
    now_ms: int,
) -> dict[str, ResolvedRegex]:
    """Return what the patterns of these members mean now; what means the same stays the same."""
    wanted = {member.subscribed_topic_regex for member in members} - {""}
    if not wanted:
        return {}
    found: dict[str, ResolvedRegex] = {}
    for regex in sorted(wanted):
        topics = _matching(regex, topic_names)
        known = before.get(regex)
        if known is None or known.topics != topics:
            # Kafka puts the version of its metadata there, to see whether topics have come since.
            known = ResolvedRegex(topics, 0, now_ms)
        found[regex] = known
    return found


def _matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    try:
        pattern = re.compile(regex)
    except (re.error, RecursionError, OverflowError):
        return frozenset()  # a real broker has let it in, whose rules know more here
    return frozenset(name for name in names if pattern.fullmatch(name))
