"""
The broker's settings that matter here, by Java's keys (BrokerConfig, and some of the store's).

They may change while the broker runs (UPDATE_BROKER_CONFIG): whoever needs one asks each time.
"""

from __future__ import annotations

import attrs

from logstore.compat.rocketmq.java_settings import JavaSettings, switch, text, whole

_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"


@attrs.define
class Settings(JavaSettings):
    """Settings with Java's defaults; times in milliseconds unless their name says otherwise."""

    broker_name: str = text("brokerName", "broker-a")
    cluster_name: str = text("brokerClusterName", "DefaultCluster")
    broker_id: int = whole("brokerId", 0)
    ip1: str = text("brokerIP1", "127.0.0.1")
    ip2: str = text("brokerIP2", "127.0.0.1")
    region: str = text("regionId", "DefaultRegion")
    is_trace_on: bool = switch("traceOn", default=True)
    permission: int = whole("brokerPermission", 6)
    registers_topics_alone: bool = switch("enableSingleTopicRegister", default=False)
    default_topic_queue_count: int = whole("defaultTopicQueueNums", 8)
    auto_creates_topics: bool = switch("autoCreateTopicEnable", default=True)
    auto_creates_groups: bool = switch("autoCreateSubscriptionGroup", default=True)
    creates_own_groups: bool = switch("enableCreateSysGroup", default=True)
    protects_system_topics: bool = switch("validateSystemTopicWhenUpdateTopic", default=True)
    allows_mixed_messages: bool = switch("enableMixedMessageType", default=False)
    clears_retry_topics: bool = switch("clearRetryTopicWhenDeleteTopic", default=True)
    forgets_unused_stats: bool = switch("autoDeleteUnusedStats", default=True)
    has_pages: bool = switch("enableSplitMetadata", default=True)
    page_count_max: int = whole("splitMetadataSize", 2000)
    has_cluster_topic: bool = switch("clusterTopicEnable", default=True)
    has_broker_topic: bool = switch("brokerTopicEnable", default=True)
    has_trace_topic: bool = switch("traceTopicEnable", default=False)
    trace_topic: str = text("msgTraceTopicName", "RMQ_SYS_TRACE_TOPIC")
    has_timer_wheel: bool = switch("timerWheelEnable", default=True)
    has_light_queues: bool = switch("enableLmq", default=False)
    timer_delay_seconds_max: int = whole("timerMaxDelaySec", 259200)
    timer_slot_count_max: int = whole("timerCongestNumEachSlot", 2147483647)
    revive_queue_count: int = whole("reviveQueueNum", 8)
    revive_interval_ms: int = whole("reviveInterval", 1000)
    has_retry_topic_v2: bool = switch("enableRetryTopicV2", default=False)
    reads_retry_topic_v1: bool = switch("retrieveMessageFromPopRetryTopicV1", default=True)
    has_separate_retry_queues: bool = switch("useSeparateRetryQueue", default=False)
    pop_retry_percent: int = whole("popFromRetryProbability", 20)
    pop_priority_retry_percent: int = whole("popFromRetryProbabilityForPriority", 0)
    limits_in_flight: bool = switch("enablePopMessageThreshold", default=False)
    in_flight_max: int = whole("popInflightMessageThreshold", 10_000)
    wakes_after_locks: bool = switch("enableNotifyAfterPopOrderLockRelease", default=True)
    checks_first_message: bool = switch("initPopOffsetByCheckMsgInMem", default=True)
    pop_waits_of_queue_max: int = whole("popPollingSize", 1024)
    pop_waits_max: int = whole("maxPopPollingSize", 100_000)
    filters_notices: bool = switch("useMessageFilterForNotification", default=True)
    notice_filtered_max: int = whole("maxMessageFilterNumForNotification", 64)
    is_priority_ascending: bool = switch("priorityOrderAsc", default=True)
    shows_retry_topics: bool = switch("popResponseReturnActualRetryTopic", default=False)
    has_lite_events: bool = switch("enableLiteEventMode", default=True)
    lite_event_check_interval_ms: int = whole("liteEventCheckInterval", 10_000)
    lite_expiry_check_interval_ms: int = whole("liteTtlCheckInterval", 120_000)
    lite_expiry_min_ms: int = whole("minLiteTTl", 900_000)
    lite_subscription_check_interval_ms: int = whole("liteSubscriptionCheckInterval", 120_000)
    lite_subscription_timeout_ms: int = whole("liteSubscriptionCheckTimeoutMills", 180_000)
    lite_subscriptions_max: int = whole("maxLiteSubscriptionCount", 100_000)
    lite_client_events_max: int = whole("maxClientEventCount", 100)
    lite_full_dispatch_delay_ms: int = whole("liteEventFullDispatchDelayTime", 10_000)
    lite_wildcard_dispatch_delay_ms: int = whole(
        "liteEventFullDispatchDelayTimeForWildcardGroup", 10_000
    )
    collects_lite_lags: bool = switch("liteLagLatencyCollectEnable", default=False)
    lite_lags_max: int = whole("liteLagLatencyTopK", 50)
    default_request_mode: str = text("defaultMessageRequestMode", "PULL")
    default_pop_share_count: int = whole("defaultPopShareQueueNum", -1)
    balances_on_server: bool = switch("serverLoadBalancerEnable", default=True)
    rejects_transactions: bool = switch("rejectTransactionMessage", default=False)
    has_long_polling: bool = switch("longPollingEnable", default=True)
    short_polling_ms: int = whole("shortPollingTimeMills", 1000)
    disables_slow_readers: bool = switch("disableConsumeIfConsumerReadSlowly", default=False)
    behind_bytes_max: int = whole("consumerFallbehindThreshold", 17_179_869_184)
    records_disk_fall: bool = switch("diskFallRecorded", default=True)
    has_lite_pull: bool = switch("litePullMessageEnable", default=True)
    notifies_consumer_ids: bool = switch("notifyConsumerIdsChangedEnable", default=True)
    notifies_at_once: bool = switch("realTimeNotifyConsumerChange", default=True)
    has_property_filter: bool = switch("enablePropertyFilter", default=False)
    filters_retries: bool = switch("filterSupportRetry", default=False)
    computes_filter_bit_maps: bool = switch("enableCalcFilterBitMap", default=False)
    resets_on_server: bool = switch("useServerSideResetOffset", default=True)
    stores_replies: bool = switch("storeReplyMessageEnable", default=True)
    rejects_pull_consumers: bool = switch("rejectPullConsumerEnable", default=False)
    recalls_messages: bool = switch("recallMessageEnable", default=False)
    recalls_without_writing: bool = switch("allowRecallWhenBrokerNotWriteable", default=True)
    reads_from_slave: bool = switch("slaveReadEnable", default=False)
    start_accepting_ms: int = whole("startAcceptSendRequestTimeStamp", 0)
    idle_seconds_max: int = whole("serverChannelMaxIdleTimeSeconds", 120)
    consumer_expiry_ms: int = whole("channelExpiredTimeout", 120_000)
    subscription_expiry_ms: int = whole("subscriptionExpiredTimeout", 600_000)
    register_interval_ms: int = whole("registerNameServerPeriod", 30000)
    transaction_timeout_ms: int = whole("transactionTimeOut", 6000)
    transaction_check_max: int = whole("transactionCheckMax", 15)
    transaction_check_interval_ms: int = whole("transactionCheckInterval", 30000)
    transaction_op_bytes_max: int = whole("transactionOpMsgMaxSize", 4096)
    transaction_op_interval_ms: int = whole("transactionOpBatchInterval", 3000)
    forward_timeout_ms: int = whole("forwardTimeout", 3000)
    offset_version_step: int = whole("consumerOffsetUpdateVersionStep", 500)
    delay_offset_version_step: int = whole("delayOffsetUpdateVersionStep", 200)
    dead_filter_ms_max: int = whole("filterDataCleanTimeSpan", 86_400_000)
    offset_flush_interval_ms: int = whole("flushConsumerOffsetInterval", 5000)
    delay_offset_flush_interval_ms: int = whole("flushDelayOffsetInterval", 10000)
    delay_levels: str = text("messageDelayLevel", _DELAY_LEVELS)
    message_bytes_max: int = whole("maxMessageSize", 4194304)
    query_count_max: int = whole("defaultQueryMaxNum", 32)
    indexed_count_max: int = whole("maxMsgsNumBatch", 64)
    flush_disk_type: str = text("flushDiskType", "ASYNC_FLUSH")
    sync_flush_timeout_ms: int = whole("syncFlushTimeout", 5000)
    broker_role: str = text("brokerRole", "ASYNC_MASTER")
    checks_offset_in_slave: bool = switch("offsetCheckInSlave", default=False)
    file_reserved_hours: int = whole("fileReservedTime", 72)
    bloom_error_percent: int = whole("maxErrorRateOfBloomFilter", 20)
    bloom_group_count: int = whole("expectConsumerNumUseFilter", 32)

    @property
    def flushes_at_once(self) -> bool:
        """Tell whether an answer waits until its message is on the disk."""
        return self.flush_disk_type == "SYNC_FLUSH"

    @property
    def idle_ms_max(self) -> int:
        """How long a connection may be silent; -1 for always."""
        return self.idle_seconds_max * 1000 if self.idle_seconds_max > 0 else -1

    @property
    def notes_slow_readers(self) -> bool:
        """Tell whether it is noted how far behind groups are that read."""
        return self.disables_slow_readers and self.records_disk_fall

    @property
    def hides_moved_offsets(self) -> bool:
        """Tell whether consumers are not told to go elsewhere: this may be a slave that is late."""
        return self.is_slave and not self.checks_offset_in_slave

    @property
    def is_slave(self) -> bool:
        """Tell whether this broker only follows another."""
        return self.broker_role == "SLAVE"
