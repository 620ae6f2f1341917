"""Expressions that consumers filter by: registered by heart beats, asked for by pulls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.segments.rocketmq.filters.sql_filter import RetrySqlFilter, SqlFilter
from logstore.segments.rocketmq.filters.sql_parser import compile_sql
from logstore.segments.rocketmq.filters.sql_tokens import SqlSyntaxError
from logstore.segments.rocketmq.tables.consumer_filters import ConsumerFilter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.clients.subscriptions import Subscription

SQL92 = "SQL92"


class ExpressionError(ValueError):
    """An expression, or the language that it is said to be written in, is not understood."""


def check_expression(expression_type: str, expression: str) -> None:
    """
    Make sure that an expression can be evaluated.

    Raises:
        ExpressionError: it cannot; the text says why.

    """
    if expression_type != SQL92:
        raise ExpressionError(f"there is no filter of type {expression_type}")
    try:
        compile_sql(expression)
    except SqlSyntaxError as error:
        raise ExpressionError(str(error)) from error


def build_filter(broker: Broker, group: str, subscription: Subscription) -> ConsumerFilter | None:
    """Return what to filter by; None for an expression that cannot be understood."""
    try:
        check_expression(subscription.expression_type, subscription.sub_string)
    except ExpressionError:
        return None
    bloom = broker.bloom_filter
    return ConsumerFilter(
        topic=subscription.topic,
        consumer_group=group,
        expression=subscription.sub_string,
        expression_type=subscription.expression_type,
        born_time_ms=broker.host.clock.wall_ms(),
        client_version=subscription.sub_version,
        bloom_bit_count=bloom.bit_count,
        bloom_positions=bloom.bit_positions(f"{group}#{subscription.topic}"),
    )


def register_filters(broker: Broker, group: str, subscriptions: Iterable[Subscription]) -> None:
    """Take over the expressions of a heart beat."""
    for subscription in subscriptions:
        if not subscription.is_by_tag and subscription.sub_string:
            found = build_filter(broker, group, subscription)
            if found is not None:
                broker.store.consumer_filters.register(found)


def wanted_filter(broker: Broker, group: str, subscription: Subscription) -> SqlFilter:
    """
    Return the filter of an expression that a pull brings with it.

    One that cannot be understood lets everything through, as real brokers were seen to do.
    """
    return filter_of(broker, build_filter(broker, group, subscription), subscription.topic)


def filter_of(broker: Broker, found: ConsumerFilter | None, topic: str | None = None) -> SqlFilter:
    """Return the filter that a group has registered."""
    if broker.settings.filters_retries:
        name = topic or (found.topic if found is not None else "")
        return RetrySqlFilter(name, found, broker.store.consumer_filters, broker.bloom_filter)
    return SqlFilter(found, broker.bloom_filter)
