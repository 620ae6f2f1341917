"""
Settings around a broker: network, name server, authentication, TLS (5.5.0).

Sources: ``NettyServerConfig``, ``NettyClientConfig``, ``NamesrvConfig``, ``AuthConfig``, and
``TlsSystemConfig``, whose names are properties of the JVM.
"""

from __future__ import annotations

from logstore.segments.rocketmq.settings.java_config import ConfigKey, ConfigType, keys_of

SERVER_KEYS = (
    *keys_of(
        ConfigType.INT,
        {
            "listenPort": 0,
            "serverWorkerThreads": 8,
            "serverCallbackExecutorThreads": 0,
            "serverSelectorThreads": 3,
            "serverOnewaySemaphoreValue": 256,
            "serverAsyncSemaphoreValue": 64,
            "serverChannelMaxIdleTimeSeconds": 120,
            "serverSocketSndBufSize": 0,
            "serverSocketRcvBufSize": 0,
            "writeBufferHighWaterMark": 0,
            "writeBufferLowWaterMark": 0,
            "serverSocketBacklog": 1024,
            "shutdownWaitTimeSeconds": 30,
        },
    ),
    *keys_of(
        ConfigType.BOOLEAN,
        {
            "serverNettyWorkerGroupEnable": True,
            "serverPooledByteBufAllocatorEnable": True,
            "enableShutdownGracefully": False,
            "useEpollNativeSelector": False,
        },
    ),
    *keys_of(
        ConfigType.TEXT,
        {
            "bindAddress": "0.0.0.0",  # noqa: S104
        },
    ),
)

CLIENT_KEYS = (
    *keys_of(
        ConfigType.INT,
        {
            "clientWorkerThreads": 4,
            "clientCallbackExecutorThreads": 2,
            "clientOnewaySemaphoreValue": 65_535,
            "clientAsyncSemaphoreValue": 65_535,
            "connectTimeoutMillis": 3000,
            "clientChannelMaxIdleTimeSeconds": 120,
            "clientSocketSndBufSize": 0,
            "clientSocketRcvBufSize": 0,
        },
    ),
    *keys_of(
        ConfigType.LONG,
        {
            "channelNotActiveInterval": 60_000,
            "maxReconnectIntervalTimeSeconds": 60,
        },
    ),
    *keys_of(
        ConfigType.BOOLEAN,
        {
            "isScanAvailableNameSrv": True,
            "clientPooledByteBufAllocatorEnable": False,
            "clientCloseSocketIfTimeout": True,
            "useTLS": False,
            "disableCallbackExecutor": False,
            "disableNettyWorkerGroup": False,
            "enableReconnectForGoAway": True,
        },
    ),
    *keys_of(
        ConfigType.TEXT,
        {
            "socksProxyConfig": "{}",
        },
    ),
)

#: A broker has more of these names; its own defaults count there.
NAME_SERVER_KEYS = (
    *keys_of(
        ConfigType.INT,
        {
            "clientRequestThreadPoolNums": 8,
            "defaultThreadPoolNums": 16,
            "clientRequestThreadPoolQueueCapacity": 50_000,
            "defaultThreadPoolQueueCapacity": 10_000,
            "unRegisterBrokerQueueCapacity": 3000,
            "waitSecondsForService": 45,
        },
    ),
    *keys_of(
        ConfigType.LONG,
        {
            "scanNotActiveBrokerInterval": 5000,
        },
    ),
    *keys_of(
        ConfigType.BOOLEAN,
        {
            "clusterTest": False,
            "orderMessageEnable": False,
            "returnOrderTopicConfigToBroker": True,
            "supportActingMaster": False,
            "enableAllTopicList": True,
            "enableTopicList": True,
            "notifyMinBrokerIdChanged": False,
            "enableControllerInNamesrv": False,
            "needWaitForService": False,
            "deleteTopicWithBrokerRegistration": False,
        },
    ),
    *keys_of(
        ConfigType.TEXT,
        {
            "kvConfigPath": None,
            "configStorePath": None,
            "productEnvName": "center",
        },
    ),
)

AUTH_KEYS = (
    *keys_of(
        ConfigType.INT,
        {
            "userCacheMaxNum": 1000,
            "userCacheExpiredSecond": 600,
            "userCacheRefreshSecond": 60,
            "aclCacheMaxNum": 1000,
            "aclCacheExpiredSecond": 600,
            "aclCacheRefreshSecond": 60,
            "statefulAuthenticationCacheMaxNum": 10_000,
            "statefulAuthenticationCacheExpiredSecond": 60,
            "statefulAuthorizationCacheMaxNum": 10_000,
            "statefulAuthorizationCacheExpiredSecond": 60,
        },
    ),
    *keys_of(
        ConfigType.BOOLEAN,
        {
            "authenticationEnabled": False,
            "authorizationEnabled": False,
            "migrateAuthFromV1Enabled": False,
        },
    ),
    *keys_of(
        ConfigType.TEXT,
        {
            "configName": None,
            "clusterName": None,
            "authConfigPath": None,
            "authenticationProvider": None,
            "authenticationMetadataProvider": None,
            "authenticationStrategy": None,
            "authenticationWhitelist": None,
            "initAuthenticationUser": None,
            "innerClientAuthenticationCredentials": None,
            "authorizationProvider": None,
            "authorizationMetadataProvider": None,
            "authorizationStrategy": None,
            "authorizationWhitelist": None,
        },
    ),
)

TLS_KEYS = (
    ConfigKey(
        "tls.server.mode",
        ConfigType.CHOICE,
        "permissive",
        ("disabled", "permissive", "enforcing"),
    ),
    *keys_of(
        ConfigType.BOOLEAN,
        {
            "tls.enable": False,
            "tls.test.mode.enable": True,
            "tls.server.authClient": False,
            "tls.client.authServer": False,
        },
    ),
    *keys_of(
        ConfigType.TEXT,
        {
            "tls.config.file": "/etc/rocketmq/tls.properties",
            "tls.server.need.client.auth": "none",
            "tls.server.keyPath": None,
            "tls.server.keyPassword": None,
            "tls.server.certPath": None,
            "tls.server.trustCertPath": None,
            "tls.client.keyPath": None,
            "tls.client.keyPassword": None,
            "tls.client.certPath": None,
            "tls.client.trustCertPath": None,
            "tls.ciphers": None,
            "tls.protocols": None,
        },
    ),
)
