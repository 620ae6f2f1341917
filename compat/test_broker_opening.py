"""How a broker for tests comes to what it serves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.in_thread import KafkaInThread
from logstore.compat.rocketmq.in_thread import RocketMQInThread
from logstore.compat.test_broker_arguments import check_secured
from logstore.host import Host

if TYPE_CHECKING:
    from logstore.compat.bridge.in_thread import BridgeInThread
    from logstore.compat.certificate_files import CertificateFiles
    from logstore.compat.kafka.security.arrangement import Arrangement as KafkaArrangement
    from logstore.compat.rocketmq.auth.arrangement import Arrangement as RocketMQArrangement


@attrs.define
class Opening:
    """What to open, the same at every start; :meth:`close` removes the files of certificates."""

    host: Host
    layout: str
    protocols: tuple[str, ...]
    settings: Mapping[str, str]
    emulate: str | None
    node_count: int
    has_proxy: bool
    _kafka_arrangement: KafkaArrangement | None = attrs.field(default=None, init=False)
    _rocketmq_arrangement: RocketMQArrangement | None = attrs.field(default=None, init=False)

    def arrange(
        self, users: Mapping[str, str], mechanisms: Collection[str], *, has_tls: bool
    ) -> None:
        """Ready what secures the broker, if anything does. ArgumentError."""
        if not (users or mechanisms or has_tls):
            return
        check_secured(self.layout, self.protocols, mechanisms)
        if self.layout == "kafka":
            from logstore.compat.kafka.security.arrangement import Arrangement

            self._kafka_arrangement = Arrangement(users, mechanisms, has_tls=has_tls)
        else:
            from logstore.compat.rocketmq.auth.arrangement import Arrangement as Users

            self._rocketmq_arrangement = Users(users, has_tls=has_tls)

    @property
    def certificates(self) -> CertificateFiles:
        """The files of a broker with TLS."""
        arranged = self._kafka_arrangement or self._rocketmq_arrangement
        assert arranged is not None, "there are certificates only with tls=True"
        return arranged

    def open(
        self, directory: str, *, is_own: bool
    ) -> KafkaInThread | RocketMQInThread | BridgeInThread:
        """Open the store; a temporary directory `is_own`."""
        if self.protocols != (self.layout,):
            from logstore.compat.bridge.in_thread import BridgeInThread, data_below

            return BridgeInThread(
                self.host, data_below(directory) if is_own else directory, self.settings,
                self.layout, self.protocols, has_proxy=self.has_proxy,
            )  # fmt: skip
        return (
            self._open_kafka(directory)
            if self.layout == "kafka"
            else self._open_rocketmq(directory)
        )

    def _open_kafka(self, directory: str) -> KafkaInThread:
        arranged, settings = self._kafka_arrangement, self.settings
        if arranged is not None:
            settings = arranged.settings(settings)
        served = KafkaInThread(self.host, directory, settings, self.emulate, self.node_count)
        if arranged is not None:
            _enter(served, lambda: arranged.enter_users(served.broker))
        return served

    def _open_rocketmq(self, directory: str) -> RocketMQInThread:
        arranged, settings = self._rocketmq_arrangement, self.settings
        if arranged is not None:
            settings = arranged.settings(settings)
        served = RocketMQInThread(self.host, directory, settings, has_proxy=self.has_proxy)
        if arranged is not None:
            _enter(served, lambda: arranged.enter_users(served.broker))
        return served

    def close(self) -> None:
        """Remove the files of certificates."""
        for arranged in (self._kafka_arrangement, self._rocketmq_arrangement):
            if arranged is not None:
                arranged.close()


def _enter(served: KafkaInThread | RocketMQInThread, enter_users: Callable[[], None]) -> None:
    try:
        enter_users()
    except BaseException:
        served.abandon()
        raise
