"""
What clients are told to do: their own settings, with what the proxy and the group say.

Source: ``GrpcClientSettingsManager``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.lite.lite_rules import subscription_quota
from logstore.compat.rocketmq.proxy.schema import MESSAGES

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.proxy_settings import ProxySettings
    from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig

_RETRY_BACKOFF = {"initial": 5_000, "max": 7_200_000, "multiplier": 2.0}
_RETRY_DELAYS_MS = tuple(
    1000 * seconds
    for seconds in (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800,
                    3600, 7200)
)  # fmt: skip


def settings_for(asked: Any, group: SubscriptionGroupConfig | None, settings: ProxySettings) -> Any:
    """Return what a client is told that has sent `asked`; `group` is that of a consumer."""
    told = MESSAGES["Settings"]()
    told.CopyFrom(asked)
    if told.HasField("publishing"):
        told.backoff_policy.max_attempts = settings.send_attempts_max
        backoff = {
            "initial": settings.send_backoff_ms,
            "max": settings.send_backoff_ms_max,
            "multiplier": settings.send_backoff_multiplier,
        }
        _set_exponential(told.backoff_policy, backoff)
        told.publishing.validate_message_type = settings.checks_message_types
        told.publishing.max_body_size = settings.body_bytes_max
    elif told.HasField("subscription") and group is not None:
        _apply_group(told, group, settings)
    told.metric.on = False
    return told


def _apply_group(told: Any, group: SubscriptionGroupConfig, settings: ProxySettings) -> None:
    told.subscription.receive_batch_size = settings.receive_count
    told.subscription.long_polling_timeout.FromMilliseconds(settings.polling_ms_max)
    told.subscription.fifo = group.is_consume_message_orderly
    told.subscription.lite_subscription_quota = subscription_quota(group)
    told.subscription.max_lite_topic_size = settings.lite_topic_bytes_max
    told.backoff_policy.max_attempts = group.retry_times_max + 1
    policy = group.group_retry_policy
    if policy.get("type") == "EXPONENTIAL":
        _set_exponential(told.backoff_policy, policy.get("exponentialRetryPolicy") or {})
    else:
        customized: Mapping[str, Any] = policy.get("customizedRetryPolicy") or {}
        _set_delays(told.backoff_policy, customized.get("next") or _RETRY_DELAYS_MS)


def _set_exponential(policy: Any, given: Mapping[str, Any]) -> None:
    words = {**_RETRY_BACKOFF, **given}
    backoff = policy.exponential_backoff
    backoff.initial.FromMilliseconds(int(words["initial"]))
    backoff.max.FromMilliseconds(int(words["max"]))
    backoff.multiplier = float(words["multiplier"])


def _set_delays(policy: Any, delays_ms: Iterable[int]) -> None:
    del policy.customized_backoff.next[:]
    for delay_ms in delays_ms:
        policy.customized_backoff.next.add().FromMilliseconds(int(delay_ms))
