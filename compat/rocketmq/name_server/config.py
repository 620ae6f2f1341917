"""The settings of a name server (``NamesrvConfig``, ``NettyServerConfig``), with Java's names."""

from __future__ import annotations

from collections.abc import Mapping

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError

#: as 5.5.0 has them, paths aside
_DEFAULTS: Mapping[str, str] = {
    "bindAddress": "0.0.0.0",  # noqa: S104 - what Java says
    "clientRequestThreadPoolNums": "8",
    "clientRequestThreadPoolQueueCapacity": "50000",
    "clusterTest": "false",
    "configBlackList": "configBlackList;configStorePath;kvConfigPath",
    "defaultThreadPoolNums": "16",
    "defaultThreadPoolQueueCapacity": "10000",
    "deleteTopicWithBrokerRegistration": "false",
    "enableAllTopicList": "true",
    "enableControllerInNamesrv": "false",
    "enableShutdownGracefully": "false",
    "enableTopicList": "true",
    "listenPort": "9876",
    "needWaitForService": "false",
    "notifyMinBrokerIdChanged": "false",
    "orderMessageEnable": "false",
    "productEnvName": "center",
    "returnOrderTopicConfigToBroker": "true",
    "scanNotActiveBrokerInterval": "5000",
    "serverAsyncSemaphoreValue": "64",
    "serverCallbackExecutorThreads": "0",
    "serverChannelMaxIdleTimeSeconds": "120",
    "serverNettyWorkerGroupEnable": "true",
    "serverOnewaySemaphoreValue": "256",
    "serverPooledByteBufAllocatorEnable": "true",
    "serverSelectorThreads": "3",
    "serverSocketBacklog": "1024",
    "serverSocketRcvBufSize": "0",
    "serverSocketSndBufSize": "0",
    "serverWorkerThreads": "8",
    "shutdownWaitTimeSeconds": "30",
    "supportActingMaster": "false",
    "unRegisterBrokerQueueCapacity": "3000",
    "useEpollNativeSelector": "false",
    "waitSecondsForService": "45",
    "writeBufferHighWaterMark": "0",
    "writeBufferLowWaterMark": "0",
}
_FLAGS = ("false", "true")
#: what no client may change, beside what `configBlackList` names
_FIXED = frozenset({"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})


class NameServerConfig:
    """The values; those that are set stay until the end of the process."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        # A broker in the same process has settings beside these, and a port of its own.
        given = {name: text for name, text in settings.items() if name in self.names()}
        self._values = {**_DEFAULTS, **given}

    @staticmethod
    def names() -> frozenset[str]:
        """Return the names of all settings that `settings` may hold for a name server."""
        return frozenset(_DEFAULTS) - {"listenPort"} | {"kvConfigPath"}

    def listen_on(self, port: int) -> None:
        """Take down where clients find the name server."""
        self._values["listenPort"] = str(port)

    @property
    def idle_ms_max(self) -> int:
        """How long a connection may be silent; -1 for always."""
        seconds = self.number("serverChannelMaxIdleTimeSeconds")
        return seconds * 1000 if seconds > 0 else -1

    def is_on(self, name: str) -> bool:
        """Return a yes or no."""
        return self._values.get(name, "").lower() == "true"

    def number(self, name: str) -> int:
        """Return a number; the default for a value that is none."""
        try:
            return int(self._values[name])
        except ValueError:
            return int(_DEFAULTS[name])

    def update(self, text: str) -> None:
        """
        Set what lines ``name=value`` say; names that are not known are left out, as in Java.

        Raises:
            RefusedError: NO_PERMISSION; one of them is not for clients to change.

        """
        given: dict[str, str] = {}
        for line in text.splitlines():
            name, _, value = line.partition("=")
            if name.strip() and not line.lstrip().startswith("#"):
                given[name.strip()] = value.strip()
        fixed = _FIXED.union(self._values["configBlackList"].split(";"))
        if not fixed.isdisjoint(given):
            raise RefusedError(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
        for name, text in given.items():
            if name in self._values:
                is_flag = _DEFAULTS.get(name) in _FLAGS
                self._values[name] = text if not is_flag else _FLAGS[text.lower() == "true"]

    def text(self) -> str:
        """Return all values as lines ``name=value``."""
        return "".join(f"{name}={value}\n" for name, value in sorted(self._values.items()))
