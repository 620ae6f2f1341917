"""A name server under test: asked as brokers and clients ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from logstore.compat.rocketmq.connection import RemotingConnection
from logstore.compat.rocketmq.name_server.name_server import NameServer
from logstore.compat.rocketmq.name_server.registration import (
    Registration,
    crc_of,
    write_registration,
)
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.frames import Answer, answers, request

KV_PATH = "/data/namesrv/kvConfig.json"
CLUSTER = "c"
VERSION = DataVersion(1_700_000_000_000, 3)


def topics_named(*names: str, perm: int = 6, queue_count: int = 4) -> dict[str, TopicConfig]:
    """Return topics by name."""
    return {name: TopicConfig(name, queue_count, queue_count, perm) for name in names}


class Conversation:
    """A name server with its brokers and clients."""

    def __init__(
        self, settings: Mapping[str, str] | None = None, host: SimulatedHost | None = None
    ) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.host = SimulatedHost(clock=self.clock) if host is None else host
        self.server = NameServer(self.host, KV_PATH, settings)
        self.client = self.connect()

    def connect(self) -> RemotingConnection:
        """Return a new connection."""
        return self.server.connect("192.0.2.1", 40000)

    def ask(
        self,
        code: int,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        version: int = 513,
        connection: RemotingConnection | None = None,
    ) -> Answer:
        """Return the answer to one request."""
        frame = request(code, fields, body, version=version)
        (answer,) = answers((connection or self.client).feed(frame))
        return answer

    def register(
        self,
        topics: Mapping[str, TopicConfig] | Sequence[str] = ("t", "u"),
        *,
        name: str = "a",
        address: str = "192.0.2.1:10911",
        broker_id: int = 0,
        cluster: str = CLUSTER,
        version: DataVersion = VERSION,
        is_compressed: bool = False,
        release: int = 513,
        connection: RemotingConnection | None = None,
        filter_servers: tuple[str, ...] = (),
        fields: Mapping[str, object] | None = None,
    ) -> Answer:
        """Register a broker, as it does itself."""
        known = topics if isinstance(topics, Mapping) else topics_named(*topics)
        body = write_registration(
            Registration(known, version, filter_servers=filter_servers),
            is_compressed=is_compressed,
        )
        stated: dict[str, object] = {
            "brokerName": name, "brokerAddr": address, "clusterName": cluster,
            "brokerId": str(broker_id), "haServerAddr": f"{address}1",
            "compressed": str(is_compressed).lower(), "bodyCrc32": str(crc_of(body)),
        }  # fmt: skip
        return self.ask(
            103, {**stated, **(fields or {})}, body, version=release, connection=connection
        )

    def route(self, topic: str, version: int = 513, **fields: object) -> Answer:
        """Ask where a topic is served."""
        return self.ask(105, {"topic": topic, **fields}, version=version)

    def topics(self) -> list[str]:
        """Return the names of all topics, sorted."""
        found: list[str] = self.ask(206).content["topicList"]
        return sorted(found)
