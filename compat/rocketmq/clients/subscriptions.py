"""What a consumer group wants of a topic (SubscriptionData, FilterAPI): tags, or an expression."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import attrs

from logstore.java_hash import java_hash
from logstore.segments.rocketmq.reading.message_filter import (
    SUBSCRIBE_ALL,
    TagFilter,
    tags_of_expression,
)

TAG = "TAG"


def is_tag_type(expression_type: str | None) -> bool:
    """Tell whether an expression of this type lists tags; no type at all means that, too."""
    return not expression_type or expression_type == TAG


class SubscriptionError(ValueError):
    """A subscription cannot be understood."""


@attrs.frozen
class Subscription:
    """A group's subscription to one topic. `codes` are the tags' hashes: what the broker sees."""

    topic: str
    sub_string: str
    tags: tuple[str, ...] = ()
    codes: frozenset[int] = frozenset()
    sub_version: int = 0
    expression_type: str = TAG
    class_filter_mode: bool = False

    @cached_property
    def tag_filter(self) -> TagFilter | None:
        """The filter of the tags; None where every message is wanted."""
        return None if self.sub_string == SUBSCRIBE_ALL else TagFilter(self.codes)

    @property
    def is_by_tag(self) -> bool:
        """Tell whether tags decide, and not an expression."""
        return is_tag_type(self.expression_type)

    def to_json(self) -> dict[str, Any]:
        """Return it as Java prints it."""
        return {
            "classFilterMode": self.class_filter_mode,
            "codeSet": sorted(self.codes),
            "expressionType": self.expression_type,
            "subString": self.sub_string,
            "subVersion": self.sub_version,
            "tagsSet": list(self.tags),
            "topic": self.topic,
        }


def subscription_to(
    topic: str, sub_string: str | None, expression_type: str | None, sub_version: int = 0
) -> Subscription:
    """
    Build the subscription that a pull request carries with it (FilterAPI.build).

    Raises:
        SubscriptionError: an expression that is not about tags is empty, or nothing but bars.

    """
    if expression_type not in (None, TAG):  # of an empty type tags are not read, and none match
        if not sub_string:
            raise SubscriptionError("Expression can't be null! " + str(expression_type))
        return Subscription(
            topic, sub_string, sub_version=sub_version, expression_type=str(expression_type)
        )
    try:
        tags = tags_of_expression(sub_string)
    except ValueError as error:
        raise SubscriptionError(str(error)) from error
    if sub_string is None or tags is None:
        return Subscription(topic, SUBSCRIBE_ALL, sub_version=sub_version)
    unique = tuple(dict.fromkeys(tags))
    return Subscription(topic, sub_string, unique, codes_of(unique), sub_version)


def codes_of(tags: Iterable[str]) -> frozenset[int]:
    """Return the hashes of `tags`."""
    return frozenset(java_hash(tag) for tag in tags)
