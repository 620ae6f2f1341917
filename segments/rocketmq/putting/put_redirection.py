"""
Messages that are not for now: sent to the queue of a delay level or to the time wheel's topic.

Source: ``HookUtils`` (5.x), ``CommitLog.asyncPutMessage`` (4.9.8, delay levels alone).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages import properties as names
from logstore.segments.rocketmq.messages.java_int import as_java_long
from logstore.segments.rocketmq.messages.properties import parse_properties
from logstore.segments.rocketmq.messages.system_flags import is_queued
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.putting.put_rules import PutRules, RefusedPutError, TimerGate
from logstore.segments.rocketmq.settings.delay_levels import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.segments.rocketmq.messages.message_draft import MessageDraft
    from logstore.segments.rocketmq.messages.own_properties import OwnProperties

TIMER_TOPIC = "rmq_sys_wheel_timer"
#: a property of a delay level, and what those of delivery times begin with
DELAY_NEEDLE, TIMER_NEEDLE = b"DELAY\x01", b"TIMER_"
_NUMBER = re.compile("[+-]?[0-9]{1,30}")
_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1


def redirect(
    draft: MessageDraft, rules: PutRules, now_ms: int, timer: TimerGate | None = None
) -> None:
    """
    Send a message that is to be delivered later elsewhere (``handleScheduleMessage``).

    Raises:
        RefusedPutError: its delivery time cannot be served, or its delay level is none.

    """
    if not is_queued(draft.sys_flag):
        return
    text = draft.properties_text
    level = _level(draft.property(DELAY_NEEDLE))
    if rules.knows_timers and TIMER_NEEDLE in text and draft.topic != TIMER_TOPIC:
        _redirect_timed(draft, level, rules, now_ms, timer)
    if level > 0 and draft.topic != SCHEDULE_TOPIC:
        _redirect_delayed(draft, level, rules)


def _redirect_delayed(draft: MessageDraft, level: int, rules: PutRules) -> None:
    """Send a message to the queue of its delay level (``transformDelayLevelMessage``)."""
    found = properties_of(draft)
    if level > rules.delay_level_max:  # else it stays as its sender spells it
        level = rules.delay_level_max
        found[names.DELAY] = str(level)
    _rewrite(draft, found, rules)
    draft.replace_topic(SCHEDULE_TOPIC, level - 1)


def _redirect_timed(
    draft: MessageDraft, level: int, rules: PutRules, now_ms: int, timer: TimerGate | None
) -> None:
    """Send a message to the time wheel's topic (``transformTimerMessage``)."""
    found = properties_of(draft)
    if level > 0:  # a delay level wins
        for name in (names.TIMER_DELIVER_MS, names.TIMER_DELAY_SECONDS, names.TIMER_DELAY_MS):
            found.pop(name, None)
        draft.replace_properties(rules.encoded(found))
        return
    if names.TIMER_OUT_MS in found:
        return
    deliver_ms = delivery_ms(found, now_ms)
    if deliver_ms is None:
        return
    if not rules.has_timer_wheel:
        reason = "the time wheel is off (timerWheelEnable)"
        raise RefusedPutError(PutMessageStatus.WHEEL_TIMER_NOT_ENABLE, reason)
    wait_ms = deliver_ms - now_ms
    if wait_ms <= 0:
        if names.TIMER_DELETE_UNIQUE_KEY in found:
            reason = "what is to be deleted is due already"
            raise RefusedPutError(PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL, reason)
        return
    if wait_ms > rules.timer_max_delay_s * 1000:
        reason = f"{wait_ms} ms from now are too far away (timerMaxDelaySec)"
        raise RefusedPutError(PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL, reason)
    precision_ms = rules.timer_precision_ms
    deliver_ms = (deliver_ms - 1) // precision_ms * precision_ms
    if timer is not None and timer.is_full_at(deliver_ms):
        reason = f"too many messages are due at {deliver_ms} (timerCongestNumEachSlot)"
        raise RefusedPutError(PutMessageStatus.WHEEL_TIMER_FLOW_CONTROL, reason)
    found[names.TIMER_OUT_MS] = str(deliver_ms)
    _rewrite(draft, found, rules)
    draft.replace_topic(TIMER_TOPIC, 0)


def delivery_ms(found: Mapping[str, str], now_ms: int) -> int | None:
    """
    Return when a message with these properties is to be delivered, None if it does not say.

    Raises:
        RefusedPutError: what it says is no time.

    """
    for name, unit_ms, start_ms in (
        (names.TIMER_DELAY_SECONDS, 1000, now_ms),
        (names.TIMER_DELAY_MS, 1, now_ms),
        (names.TIMER_DELIVER_MS, 1, 0),
    ):
        text = found.get(name)
        if text is None:
            continue
        if not _NUMBER.fullmatch(text) or not -_LONG_MAX - 1 <= int(text) <= _LONG_MAX:
            reason = f"{name}: {text!r} is no time"
            raise RefusedPutError(PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL, reason)
        return as_java_long(start_ms + int(text) * unit_ms)  # the far future is long past
    return None


def _rewrite(draft: MessageDraft, found: dict[str, str], rules: PutRules) -> None:
    """Note where the message comes from, in the order of Java's map."""
    found[names.REAL_TOPIC] = draft.topic
    found[names.REAL_QUEUE_ID] = str(draft.queue_id)
    own = _own(draft)
    draft.replace_properties(rules.encoded(found, None if own is None else own.capacity))


def properties_of(draft: MessageDraft) -> dict[str, str]:
    """Return what a message has: what the broker has made of it, or what stands in its text."""
    own = _own(draft)
    return parse_properties(draft.properties_text) if own is None else dict(own.entries)


def _own(draft: MessageDraft) -> OwnProperties | None:
    """Return what the broker has made the properties of; None where they are a client's text."""
    return getattr(draft, "own_properties", None)


def _level(text: str | None) -> int:
    """
    Return the delay level that a property spells, 0 for none.

    Raises:
        RefusedPutError: it is no number (Java breaks down over it, and stores nothing).

    """
    if not text:
        return 0
    if not _NUMBER.fullmatch(text) or not -_INT_MAX - 1 <= int(text) <= _INT_MAX:
        reason = f"{names.DELAY}: {text!r} is no delay level"
        raise RefusedPutError(PutMessageStatus.UNKNOWN_ERROR, reason)
    return int(text)
