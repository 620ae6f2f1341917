"""The proxy's settings that matter here, by Java's keys (ProxyConfig)."""

from __future__ import annotations

import attrs

from logstore.compat.rocketmq.java_settings import JavaSettings, switch, text, whole
from logstore.segments.rocketmq.settings.delay_levels import DEFAULT_DELAY_LEVELS


@attrs.define
class ProxySettings(JavaSettings):
    """Settings with Java's defaults, in milliseconds and bytes; limits of 0 are none."""

    #: LOCAL: who comes is told of the broker beside the proxy alone
    mode: str = text("proxyMode", "CLUSTER")
    #: Java's proxy and broker have one each of that name; here it is the same
    body_bytes_max: int = whole("maxMessageSize", 4 * 1024 * 1024)
    properties_bytes_max: int = whole("maxUserPropertySize", 16 * 1024)
    property_count_max: int = whole("userPropertyMaxNum", 128)
    message_group_bytes_max: int = whole("maxMessageGroupSize", 64)
    lite_topic_bytes_max: int = whole("maxLiteTopicSize", 64)
    #: so many messages a consumer of lite topics may work at, and is given no more
    lite_renewed_max: int = whole("maxLiteRenewNumPerChannel", 100)
    refuses_empty_bodies: bool = switch("enableMessageBodyEmptyCheck", default=True)
    checks_message_types: bool = switch("enableTopicMessageTypeCheck", default=True)
    delay_ms_max: int = whole("maxDelayTimeMills", 86_400_000)
    uses_delay_levels: bool = switch("useDelayLevel", default=False)
    #: Java's proxy and broker have one each of that name; here it is the same
    delay_levels: str = text("messageDelayLevel", DEFAULT_DELAY_LEVELS)
    transaction_recovery_seconds_max: int = whole("maxTransactionRecoverySecond", 3600)

    invisible_ms_min: int = whole("minInvisibleTimeMillsForRecv", 10_000)
    invisible_ms_max: int = whole("maxInvisibleTimeMills", 12 * 3_600_000)
    #: at first, of what the proxy prolongs
    renewed_ms: int = whole("defaultInvisibleTimeMills", 60_000)
    renews: bool = switch("enableProxyAutoRenew", default=True)
    renew_interval_ms: int = whole("renewSchedulePeriodMillis", 5_000)
    renew_ahead_ms: int = whole("renewAheadTimeMillis", 10_000)
    renewed_ms_max: int = whole("renewMaxTimeMillis", 3 * 3_600_000)
    #: for so long the messages of a consumer that is gone stay invisible
    cleared_ms: int = whole("invisibleTimeMillisWhenClear", 1_000)

    #: of one message of gRPC, which holds those of a request
    request_bytes_max: int = whole("grpcMaxInboundMessageSize", 130 * 1024 * 1024)
    polling_ms_min: int = whole("grpcClientConsumerMinLongPollingTimeoutMillis", 5_000)
    polling_ms_max: int = whole("grpcClientConsumerMaxLongPollingTimeoutMillis", 20_000)
    receive_count: int = whole("grpcClientConsumerLongPollingBatchSize", 32)
    send_attempts_max: int = whole("grpcClientProducerMaxAttempts", 3)
    send_backoff_ms: int = whole("grpcClientProducerBackoffInitialMillis", 10)
    send_backoff_ms_max: int = whole("grpcClientProducerBackoffMaxMillis", 1_000)
    send_backoff_multiplier: int = whole("grpcClientProducerBackoffMultiplier", 2)
    idle_ms_max: int = whole("channelExpiredTimeout", 120_000)
