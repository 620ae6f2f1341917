"""
Patterns of topic names: what members subscribe to with one, and when that is looked up again.

A pattern must match a whole name. It is read, and matched in linear time, as RE2 does for Kafka.

A real broker looks patterns up aside and tells members in a later heartbeat; here it is done at
once. Where there is an authorizer a pattern means what the member may see whose heartbeat has it
looked up: with a new pattern, with new topics, and once in a while.

Source: ``maybeUpdateRegularExpressions`` of ``GroupMetadataManager``, ``TopicRegexResolver``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.records import ResolvedRegex
from logstore.compat.kafka.groups.modern.cluster import Cluster
from logstore.compat.kafka.re2_pattern import PatternError, compiled
from logstore.compat.kafka.refused_request import RefusedRequestError

_REFRESH_INTERVAL = "group.consumer.regex.refresh.interval.ms"


def check_regex(regex: str) -> None:
    """
    Refuse what is no pattern.

    Raises:
        RefusedRequestError: 128, with the reason.

    """
    try:
        compiled(regex)
    except PatternError as error:
        raise RefusedRequestError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from error


def regexes_of(members: Iterable[ConsumerMember]) -> frozenset[str]:
    """Return the patterns that members subscribe to."""
    return frozenset(member.subscribed_topic_regex for member in members) - {""}


def is_stale(found: Mapping[str, ResolvedRegex], cluster: Cluster, now_ms: int) -> bool:
    """Tell whether patterns are looked up again, as what members may see may have changed."""
    interval_ms = cluster.integer(_REFRESH_INTERVAL)
    return any(now_ms > one.timestamp_ms + interval_ms for one in found.values())


def resolved(
    wanted: Iterable[str],
    before: Mapping[str, ResolvedRegex],
    topic_names: frozenset[str],
    now_ms: int,
    metadata_offset: int,
    may_see: Callable[[str], bool] | None,
) -> dict[str, ResolvedRegex]:
    """
    Return what these patterns mean now: topics that the one who asks may see.

    What means the same to everybody stays the same.
    """
    found: dict[str, ResolvedRegex] = {}
    for regex in sorted(wanted):
        topics = _matching(regex, topic_names)
        if may_see is not None:
            topics = frozenset(filter(may_see, topics))
        known = before.get(regex)
        if known is None or known.topics != topics or may_see is not None:
            known = ResolvedRegex(topics, metadata_offset, now_ms)
        found[regex] = known
    return found


def _matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    try:
        pattern = compiled(regex)
    except PatternError:
        return frozenset()  # a real broker has let it in, which knows more here
    return frozenset(name for name in names if pattern.fits(name))
