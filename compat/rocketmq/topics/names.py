"""Names of topics and groups: which are allowed, which are the broker's own (TopicValidator)."""

from __future__ import annotations

import re

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.messages.java_strings import java_length

AUTO_CREATE_TOPIC = "TBW102"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
SCHEDULE_GROUP = "SCHEDULE_CONSUMER"
BENCHMARK_TOPIC = "BenchmarkTest"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
ROCKSDB_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_OP_HALF_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"
TIMER_TOPIC = "rmq_sys_wheel_timer"
SYSTEM_PREFIX = "rmq_sys_"
RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
LMQ_PREFIX = "%LMQ%"
TRANSACTION_GROUP = "CID_RMQ_SYS_TRANS"

#: what no broker lets clients delete or change
SYSTEM_TOPICS = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        HALF_TOPIC,
        TRACE_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        CHECKPOINT_TOPIC,
        ROCKSDB_HALF_TOPIC,
        ROCKSDB_OP_HALF_TOPIC,
    }
)
#: what clients cannot send to
UNSENDABLE_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        ROCKSDB_HALF_TOPIC,
        ROCKSDB_OP_HALF_TOPIC,
    }
)
#: groups that a broker makes at its start
SYSTEM_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    TRANSACTION_GROUP,
)

TOPIC_LENGTH_MAX = 127
GROUP_LENGTH_MAX = 120
RETRY_TOPIC_LENGTH_MAX = 255
_ALLOWED = re.compile(r"[%|a-zA-Z0-9_-]*")
_PATTERN = "^[%|a-zA-Z0-9_-]+$"

#: what Java adds to remarks about things that an administrator must make first
SEE_FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


def retry_topic(group: str) -> str:
    """Return the topic that messages come from which the group could not consume at first."""
    return RETRY_PREFIX + group


def revive_topic(cluster: str) -> str:
    """Return where a broker keeps what was popped and acknowledged."""
    return f"{SYSTEM_PREFIX}REVIVE_LOG_{cluster}"


def dlq_topic(group: str) -> str:
    """Return the topic for messages which the group could not consume at all."""
    return DLQ_PREFIX + group


def flaw_of_topic(topic: str) -> str | None:
    """Return why no topic can be called that; None if it can."""
    if not topic.strip():
        return "The specified topic is blank."
    if not _ALLOWED.fullmatch(topic):
        return (
            f"The specified topic: {topic}, contains illegal characters, allowing only {_PATTERN}"
        )
    length = java_length(topic)
    if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        if length > RETRY_TOPIC_LENGTH_MAX:
            return (
                f"The specified topic is DLQ or Retry topic: {topic}, and it's longer than topic "
                f"max length: {RETRY_TOPIC_LENGTH_MAX}"
            )
    elif length > TOPIC_LENGTH_MAX:
        return f"The specified topic: {topic}, is longer than topic max length: {TOPIC_LENGTH_MAX}"
    return None


def flaw_of_group(group: str) -> str | None:
    """Return why no group can be called that; None if it can."""
    if not group.strip():
        return "The specified group is blank."
    if not _ALLOWED.fullmatch(group):
        return (
            f"The specified group: {group}, contains illegal characters, allowing only {_PATTERN}"
        )
    if java_length(group) > GROUP_LENGTH_MAX:
        return f"The specified group: {group}, is longer than group max length: {GROUP_LENGTH_MAX}"
    return None


def check_topic(topic: str) -> None:
    """
    Refuse a topic that cannot be called that.

    Raises:
        RefusedError: INVALID_PARAMETER.

    """
    flaw = flaw_of_topic(topic)
    if flaw is not None:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, flaw)


def check_group(group: str) -> None:
    """
    Refuse a group that cannot be called that.

    Raises:
        RefusedError: INVALID_PARAMETER.

    """
    flaw = flaw_of_group(group)
    if flaw is not None:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, flaw)
