"""
The broker's settings that matter here, by Java's keys (BrokerConfig, and some of the store's).

They may change while the broker runs (UPDATE_BROKER_CONFIG): whoever needs one asks each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from logstore.segments.rocketmq.settings.java_config import JavaConfig

_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"


def _flag(text: str) -> bool:
    return text.strip().lower() == "true"


def _key(name: str, default: Any, read: Callable[[str], Any]) -> Any:
    return attrs.field(default=default, metadata={"key": name, "read": read})


def _text(name: str, default: str) -> str:
    found: str = _key(name, default, str.strip)
    return found


def _whole(name: str, default: int) -> int:
    found: int = _key(name, default, int)
    return found


def _switch(name: str, *, default: bool) -> bool:
    found: bool = _key(name, default, _flag)
    return found


@attrs.define
class Settings:
    """Settings with Java's defaults; times in milliseconds unless their name says otherwise."""

    broker_name: str = _text("brokerName", "broker-a")
    cluster_name: str = _text("brokerClusterName", "DefaultCluster")
    broker_id: int = _whole("brokerId", 0)
    ip1: str = _text("brokerIP1", "127.0.0.1")
    ip2: str = _text("brokerIP2", "127.0.0.1")
    region: str = _text("regionId", "DefaultRegion")
    is_trace_on: bool = _switch("traceOn", default=True)
    permission: int = _whole("brokerPermission", 6)
    default_topic_queue_count: int = _whole("defaultTopicQueueNums", 8)
    auto_creates_topics: bool = _switch("autoCreateTopicEnable", default=True)
    auto_creates_groups: bool = _switch("autoCreateSubscriptionGroup", default=True)
    has_cluster_topic: bool = _switch("clusterTopicEnable", default=True)
    has_broker_topic: bool = _switch("brokerTopicEnable", default=True)
    has_trace_topic: bool = _switch("traceTopicEnable", default=False)
    trace_topic: str = _text("msgTraceTopicName", "RMQ_SYS_TRACE_TOPIC")
    has_timer_wheel: bool = _switch("timerWheelEnable", default=True)
    timer_delay_seconds_max: int = _whole("timerMaxDelaySec", 259200)
    timer_slot_count_max: int = _whole("timerCongestNumEachSlot", 2147483647)
    revive_queue_count: int = _whole("reviveQueueNum", 8)
    has_retry_topic_v2: bool = _switch("enableRetryTopicV2", default=False)
    reads_retry_topic_v1: bool = _switch("retrieveMessageFromPopRetryTopicV1", default=True)
    pop_retry_percent: int = _whole("popFromRetryProbability", 20)
    pop_priority_retry_percent: int = _whole("popFromRetryProbabilityForPriority", 0)
    is_priority_ascending: bool = _switch("priorityOrderAsc", default=True)
    shows_retry_topics: bool = _switch("popResponseReturnActualRetryTopic", default=False)
    default_request_mode: str = _text("defaultMessageRequestMode", "PULL")
    default_pop_share_count: int = _whole("defaultPopShareQueueNum", -1)
    balances_on_server: bool = _switch("serverLoadBalancerEnable", default=True)
    rejects_transactions: bool = _switch("rejectTransactionMessage", default=False)
    has_long_polling: bool = _switch("longPollingEnable", default=True)
    short_polling_ms: int = _whole("shortPollingTimeMills", 1000)
    has_lite_pull: bool = _switch("litePullMessageEnable", default=True)
    notifies_consumer_ids: bool = _switch("notifyConsumerIdsChangedEnable", default=True)
    has_property_filter: bool = _switch("enablePropertyFilter", default=False)
    filters_retries: bool = _switch("filterSupportRetry", default=False)
    computes_filter_bit_maps: bool = _switch("enableCalcFilterBitMap", default=False)
    resets_on_server: bool = _switch("useServerSideResetOffset", default=True)
    stores_replies: bool = _switch("storeReplyMessageEnable", default=True)
    rejects_pull_consumers: bool = _switch("rejectPullConsumerEnable", default=False)
    recalls_messages: bool = _switch("recallMessageEnable", default=False)
    reads_from_slave: bool = _switch("slaveReadEnable", default=False)
    start_accepting_ms: int = _whole("startAcceptSendRequestTimeStamp", 0)
    register_interval_ms: int = _whole("registerNameServerPeriod", 30000)
    transaction_timeout_ms: int = _whole("transactionTimeOut", 6000)
    transaction_check_max: int = _whole("transactionCheckMax", 15)
    transaction_check_interval_ms: int = _whole("transactionCheckInterval", 30000)
    transaction_op_bytes_max: int = _whole("transactionOpMsgMaxSize", 4096)
    transaction_op_interval_ms: int = _whole("transactionOpBatchInterval", 3000)
    offset_flush_interval_ms: int = _whole("flushConsumerOffsetInterval", 5000)
    delay_offset_flush_interval_ms: int = _whole("flushDelayOffsetInterval", 10000)
    delay_levels: str = _text("messageDelayLevel", _DELAY_LEVELS)
    message_bytes_max: int = _whole("maxMessageSize", 4194304)
    query_count_max: int = _whole("defaultQueryMaxNum", 32)
    indexed_count_max: int = _whole("maxMsgsNumBatch", 64)
    flush_disk_type: str = _text("flushDiskType", "ASYNC_FLUSH")
    sync_flush_timeout_ms: int = _whole("syncFlushTimeout", 5000)
    broker_role: str = _text("brokerRole", "ASYNC_MASTER")
    checks_offset_in_slave: bool = _switch("offsetCheckInSlave", default=False)
    file_reserved_hours: int = _whole("fileReservedTime", 72)
    bloom_error_percent: int = _whole("maxErrorRateOfBloomFilter", 20)
    bloom_group_count: int = _whole("expectConsumerNumUseFilter", 32)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Settings:
        """
        Return the settings that `given` says, by Java's keys; others are Java's defaults.

        Raises:
            ValueError: a value is no number where one belongs.

        """
        settings = cls()
        settings.update(given)
        return settings

    @classmethod
    def of_config(cls, config: JavaConfig) -> Settings:
        """Return the settings that a whole configuration says, its defaults included."""
        given: dict[str, str] = {}
        for field in attrs.fields(cls):
            value = config[field.metadata["key"]]
            if isinstance(value, bool):
                given[field.metadata["key"]] = "true" if value else "false"
            elif value is not None:
                given[field.metadata["key"]] = str(value)
        return cls.of(given)

    def update(self, given: Mapping[str, str]) -> None:
        """
        Take over what `given` says of the settings that matter here.

        Raises:
            ValueError: a value is no number where one belongs; nothing has changed then.

        """
        found: dict[str, Any] = {}
        for field in attrs.fields(Settings):
            key: str = field.metadata["key"]
            if key in given:
                try:
                    found[field.name] = field.metadata["read"](given[key])
                except ValueError as error:
                    raise ValueError(f"{key}={given[key]}: {error}") from error
        for name, value in found.items():
            setattr(self, name, value)

    @property
    def flushes_at_once(self) -> bool:
        """Tell whether an answer waits until its message is on the disk."""
        return self.flush_disk_type == "SYNC_FLUSH"

    @property
    def hides_moved_offsets(self) -> bool:
        """Tell whether consumers are not told to go elsewhere: this may be a slave that is late."""
        return self.is_slave and not self.checks_offset_in_slave

    @property
    def is_slave(self) -> bool:
        """Tell whether this broker only follows another."""
        return self.broker_role == "SLAVE"
