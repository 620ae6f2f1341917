"""Settings of the proxy that mean something to ours (``ProxyConfig`` of 5.5.0)."""

from __future__ import annotations

from logstore.segments.rocketmq.settings.java_config import ConfigType, keys_of

PROXY_KEYS = (
    *keys_of(ConfigType.TEXT, {"proxyMode": "CLUSTER"}),
    *keys_of(
        ConfigType.INT,
        {
            "grpcMaxInboundMessageSize": 130 * 1024 * 1024,
            "maxUserPropertySize": 16 * 1024,
            "userPropertyMaxNum": 128,
            "maxMessageGroupSize": 64,
            "maxLiteTopicSize": 64,
            "maxLiteRenewNumPerChannel": 100,
            "grpcClientProducerMaxAttempts": 3,
            "grpcClientProducerBackoffMultiplier": 2,
            "grpcClientConsumerLongPollingBatchSize": 32,
        },
    ),
    *keys_of(
        ConfigType.LONG,
        {
            "defaultInvisibleTimeMills": 60_000,
            "minInvisibleTimeMillsForRecv": 10_000,
            "maxInvisibleTimeMills": 43_200_000,
            "maxDelayTimeMills": 86_400_000,
            "maxTransactionRecoverySecond": 3600,
            "grpcClientProducerBackoffInitialMillis": 10,
            "grpcClientProducerBackoffMaxMillis": 1000,
            "grpcClientConsumerMinLongPollingTimeoutMillis": 5000,
            "grpcClientConsumerMaxLongPollingTimeoutMillis": 20_000,
            "invisibleTimeMillisWhenClear": 1000,
            "renewAheadTimeMillis": 10_000,
            "renewMaxTimeMillis": 10_800_000,
            "renewSchedulePeriodMillis": 5000,
            "channelExpiredTimeout": 120_000,
        },
    ),
    *keys_of(
        ConfigType.BOOLEAN,
        {
            "enableMessageBodyEmptyCheck": True,
            "enableTopicMessageTypeCheck": True,
            "enableProxyAutoRenew": True,
            "useDelayLevel": False,
        },
    ),
)
