"""
A broker for tests: in this process, on a free port, in milliseconds.

Both brokers are imported with this module, so that even the first one starts as fast as all others.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Collection, Mapping
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NoReturn, Self, TypeVar

from logstore.compat.faults.request_faults import RequestFaults
from logstore.compat.kafka.in_thread import KafkaInThread
from logstore.compat.own_folder import OwnFolder
from logstore.compat.strange_settings import StrangeSettingWarning, strange_settings
from logstore.compat.test_broker_arguments import (
    brokers_within,
    check_kinds,
    check_ports,
    directory_text,
    protocols_served,
    setting_texts,
    user_passwords,
)
from logstore.compat.test_broker_opening import Opening
from logstore.compat.test_broker_topics import (
    check_topic_shape,
    create_kafka_topic,
    put_rocketmq_topic,
)
from logstore.host import Host
from logstore.testing.faulty_files import FaultyFileSystem
from logstore.testing.manual_clock import ManualClock
from logstore.testing.running_clock import RunningClock
from logstore.testing.simulated_disk import SimulatedDisk

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from logstore.compat.bridge.in_thread import BridgeInThread
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.rocketmq.broker import Broker as RocketMQBroker
    from logstore.compat.rocketmq.in_thread import RocketMQInThread
    from logstore.testing.disk_faults import DiskFaults
    from logstore.testing.power_loss import PowerLoss

ResultT = TypeVar("ResultT")


class TestBroker:
    """
    A Kafka broker, or a RocketMQ name server and broker, in a thread of this process.

    ::

        with TestBroker() as broker:
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

        with TestBroker(layout="rocketmq") as broker:
            producer.set_name_server_address(broker.bootstrap)

    Without `directory` the data lives in a temporary directory that goes away at the end.
    `settings` are those of ``server.properties`` or ``broker.conf``; they win over what
    :mod:`logstore.compat.kafka.in_thread` and :mod:`logstore.compat.rocketmq.in_thread` set. One
    that these brokers do not have is a :class:`StrangeSettingWarning`, and has no effect.
    `port` is the one that clients are given, the name server's with RocketMQ, whose broker listens
    on `broker_port`; 0 is any free one.

    With `emulate`, as in ``TestBroker(emulate="0.10.2")``, clients find that Kafka release's APIs.

    With `nodes` clients see so many Kafka brokers, each of which leads its share of the partitions
    (:mod:`logstore.compat.kafka.nodes`); their addresses are all in :attr:`bootstrap`. Their racks
    are named in turn by the setting ``broker.rack``, as ``"a,b,c"``.

    `protocols` says who is served, on either layout: ``("kafka", "rocketmq")`` for both. Then
    `port` is Kafka's if Kafka is among them, and :attr:`name_server` the other address.

    With `proxy` RocketMQ's own clients of 5.x, which speak gRPC, find it at :attr:`endpoints`, on
    `proxy_port`. This needs the extra ``grpc``.

    Kafka's clients say who they are where there are `users`, by any of `mechanisms`: ``PLAIN`` and
    SCRAM if they are not named, or ``OAUTHBEARER``. With `tls` (extra ``tls``) there is a
    certificate that was made for this broker::

        with TestBroker(users={"alice": "secret"}, tls=True) as broker:
            Producer({
                "bootstrap.servers": broker.bootstrap, "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "alice",
                "sasl.password": "secret", "ssl.ca.location": broker.ca_file,
            })

    Any other arrangement is a matter of Kafka's own `settings` (``listeners``, ``ssl.*`` ...), and
    several listeners have an address each in :attr:`listeners`.

    RocketMQ's clients sign with a user's name and password as access key and secret key; with `tls`
    both its ports, and the proxy's, speak TLS only. What users may do is asked with
    ``authorizationEnabled``.

    It fails when told to::

        broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", topic="orders", times=3)
        broker.faults.drop("Fetch", when="after")
        broker.disk.fail_next("sync", errno.EIO)
        broker.clock.advance(60_000)
        broker.move_leaders("orders")
        broker.stop_node(2)  # of several `nodes`
        broker.crash()
        broker.start()

    What is on the disk is really there, so a crash loses nothing that the operating system has. A
    `host` with a simulated disk can lose power: ``SimulatedHost(clock=RunningClock())`` from
    :mod:`logstore.testing`, with :meth:`crash`.
    """

    __test__ = False  # a class named Test... is not a test

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        layout: Literal["kafka", "rocketmq"] = "kafka",
        protocols: Collection[Literal["kafka", "rocketmq"]] | None = None,
        port: int = 0,
        broker_port: int = 0,
        settings: Mapping[str, str | float] | None = None,
        emulate: str | None = None,
        nodes: int = 1,
        users: Mapping[str, str] | None = None,
        mechanisms: Collection[str] = (),
        tls: bool = False,
        proxy: bool = False,
        proxy_port: int = 0,
        host: Host | None = None,
    ) -> None:
        self.directory = directory_text(directory)
        self.layout = layout
        self.protocols = protocols_served(layout, protocols)
        check_ports(self.protocols, port=port, broker_port=broker_port, proxy_port=proxy_port)
        check_kinds(layout, self.protocols, nodes, emulate, has_proxy=proxy)
        self._temporary: OwnFolder | None = None
        self._ports: tuple[int, ...] = (port, broker_port, *((proxy_port,) if proxy else ()))
        #: those that it had before it crashed
        self._ports_before: tuple[int, ...] = ()
        #: one at a time starts or stops it
        self._changing = threading.RLock()
        #: where it runs; what a fork makes of this object is no broker
        self._process_id = os.getpid()
        if host is None:
            host = Host(FaultyFileSystem(), RunningClock(), Random())
        self._host = host
        texts = setting_texts(settings)
        for strange in strange_settings(brokers_within(layout, self.protocols), texts):
            warnings.warn(strange.text, StrangeSettingWarning, stacklevel=2)
        self._opening = Opening(host, layout, self.protocols, texts, emulate, nodes, proxy)
        self._opening.arrange(user_passwords(users), mechanisms, has_tls=tls)
        #: the requests that are to fail; they stay planned when the broker stops
        self.faults = RequestFaults()
        self.faults.run = self._run
        if isinstance(host.clock, ManualClock):
            host.clock.on_push = self._clock_pushed
        self._served: KafkaInThread | RocketMQInThread | BridgeInThread | None = None

    @property
    def broker(self) -> Broker:
        """The Kafka broker itself; touch it only through :meth:`call`."""
        assert "kafka" in self.protocols, "ask for .rocketmq"
        return self._kafka

    @property
    def _kafka(self) -> Broker:
        running = self._running
        broker: Broker = running.kafka if _is_bridge(running) else running.broker  # type: ignore[assignment] # as the protocols say
        return broker

    @property
    def rocketmq(self) -> RocketMQBroker:
        """The RocketMQ broker itself; touch it only through :meth:`call`."""
        assert "rocketmq" in self.protocols, "ask for .broker"
        running = self._running
        broker: RocketMQBroker = running.rocketmq if _is_bridge(running) else running.broker  # type: ignore[assignment] # likewise
        return broker

    @property
    def _running(self) -> KafkaInThread | RocketMQInThread | BridgeInThread:
        assert self._served is not None, "the broker runs only within the with statement"
        return self._served

    @property
    def disk(self) -> DiskFaults:
        """What is to go wrong with the files."""
        fs = self._host.fs
        assert isinstance(fs, FaultyFileSystem | SimulatedDisk), f"nothing fails in {fs}"
        return fs.faults

    @property
    def clock(self) -> ManualClock:
        """The broker's time, to be pushed on; what is due by then has been done on return."""
        clock = self._host.clock
        assert isinstance(clock, ManualClock), f"nobody can push {clock}"
        return clock

    @property
    def is_running(self) -> bool:
        """Whether it is started, and neither stopped nor crashed since."""
        return self._served is not None

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        return self._running.port

    @property
    def bootstrap(self) -> str:
        """What clients call ``bootstrap.servers``, or the name server's address."""
        running = self._running
        if isinstance(running, KafkaInThread):
            return ",".join(self.nodes.values())
        return f"127.0.0.1:{self.port}"

    @property
    def listeners(self) -> dict[str, str]:
        """The addresses of a Kafka broker's listeners by name, as ``SASL_SSL``."""
        return {one.name: one.address for one in self.broker.listeners}

    @property
    def nodes(self) -> dict[int, str]:
        """The addresses of the Kafka brokers that clients see, by node id."""
        nodes = self.broker.nodes.by_id.values()
        return {node.node_id: node.listeners[0].address for node in nodes}

    @property
    def ca_file(self) -> str:
        """The file (PEM) of the certificate that clients of a broker with `tls` are to trust."""
        return self._opening.certificates.ca_file()

    def client_certificate(self, name: str) -> str:
        """
        Return a file (PEM) with key and certificate of a client, issued by the same authority.

        Its user is ``CN=<name>,O=logstore``, unless ``ssl.principal.mapping.rules`` make another of
        it; ``ssl.client.auth``, or RocketMQ's ``tls.server.need.client.auth``, says whether the
        broker asks for one.
        """
        return self._opening.certificates.client_file(name)

    @property
    def name_server(self) -> str:
        """The RocketMQ name server's address."""
        running = self._running
        port = running.name_server_port if _is_bridge(running) else running.port
        return f"127.0.0.1:{port}"

    @property
    def endpoints(self) -> str:
        """What gRPC clients of RocketMQ call the endpoints."""
        assert self._opening.has_proxy, "there is a proxy only where it is asked for"
        return f"127.0.0.1:{self._running.proxy_port}"

    def create_topic(self, name: str, count: int = 1, **settings: str | float) -> None:
        """
        Create a topic with so many partitions or queues.

        `settings` are its configuration (Kafka) or its attributes (RocketMQ), with ``_`` where they
        have ``.``: ``message_type="FIFO"``. Where both protocols are served they are the layout's.

        Raises:
            LogStoreError: no client may create such a topic, either.

        """
        check_topic_shape(name, count)
        texts = setting_texts(settings)
        given = {key.replace("_", "."): value for key, value in texts.items()}
        is_of_kafka = "kafka" in self.protocols and self.layout == "kafka"
        if is_of_kafka or "rocketmq" not in self.protocols:
            self.call(lambda: create_kafka_topic(self._kafka, name, count, given))
        else:
            self.call(lambda: put_rocketmq_topic(self.rocketmq, name, count, given))

    def call(self, work: Callable[[], ResultT]) -> ResultT:
        """Run `work` in the broker's thread; return what it returns, raise what it raises."""
        self._check_process()
        thread = self._running.thread
        assert thread is not None, "the broker runs only within the with statement"
        return thread.call(work)

    def _check_process(self) -> None:
        if self._is_copy:
            raise RuntimeError(
                f"this broker runs in process {self._process_id}, which forked this one; use its "
                "address here, and the rest there"
            )

    @property
    def _is_copy(self) -> bool:
        return os.getpid() != self._process_id

    def _check_outside(self) -> None:
        """Refuse to stop the thread that asks for it."""
        thread = None if self._served is None else self._served.thread
        if thread is not None and thread.is_this:
            raise RuntimeError("a broker cannot stop itself; stop it outside of call()")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a TestBroker stays in its process; hand its address on (.bootstrap)")

    def _run(self, work: Callable[[], ResultT]) -> ResultT:
        """Run `work` where requests are served, if they are."""
        return work() if self._served is None else self.call(work)

    def _clock_pushed(self) -> None:
        if self._served is not None and self._served.thread is not None:
            self._served.thread.catch_up()

    def move_leaders(
        self, topic: str, partition: int | None = None, to: int | None = None
    ) -> dict[int, int]:
        """
        Begin the next leader epoch of a Kafka partition, or of all of a topic; return the epochs.

        Of several nodes the next one in sync leads then, or the one with the id `to`.

        Raises:
            ValueError: there is no such partition, or the node cannot lead it.

        """
        from logstore.compat.kafka.faults.leaders import move_leaders

        assert self.layout == "kafka", "RocketMQ's layout knows no leader epochs"
        return self.call(lambda: move_leaders(self.broker, topic, partition, to))

    def stop_node(self, node_id: int) -> None:
        """
        Take one of several Kafka nodes out: its clients are hung up on, others lead what it led.

        What no other node has in sync has no leader until it is back.

        Raises:
            ValueError: there is no such node.

        """
        self.call(lambda: self.broker.nodes.stop(node_id))

    def start_node(self, node_id: int) -> None:
        """
        Let a node that was stopped in again, on the same port, and into sync.

        Raises:
            ValueError: there is no such node.
            OSError: its port has been taken by somebody else.

        """
        self.call(lambda: self.broker.nodes.start(node_id))

    def start(self) -> Self:
        """
        Open the store and serve it; after :meth:`crash` the same data on the same ports.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            StorageError: the directory cannot be served.
            AddressError: the port is taken.

        """
        with self._changing:
            self._start()
        return self

    def _start(self) -> None:
        assert self._served is None, "the broker runs already"
        self._process_id = os.getpid()
        end = self.stop if not self.directory else self.crash
        if not self.directory:
            self._temporary = OwnFolder("logstore-")
            self.directory = self._temporary.name
        try:
            self._served = self._opening.open(self.directory, is_own=self._temporary is not None)
            self._served.make_faulty(self.faults)
            self._served.start(*(self._ports_before or self._ports))
        except BaseException:
            end()
            raise

    def crash(self, loss: PowerLoss | None = None) -> None:
        """
        Stop as a killed process does; :meth:`start` finds what it left. Fine if it does not run.

        With a `loss` the simulated machine loses power, too: say what of the unsynced stays.
        """
        fs = self._host.fs
        assert loss is None or isinstance(fs, SimulatedDisk), f"no power is lost in {fs}"
        self._check_process()
        self._check_outside()
        with self._changing:
            served, self._served = self._served, None
            if served is not None:
                self._ports_before = served.ports
                try:
                    served.stop()
                finally:
                    served.abandon()
            if loss is not None and isinstance(fs, SimulatedDisk):
                fs.power_loss(loss)

    def restart(self) -> None:
        """Stop cleanly, and start on the same data and ports. Clients find it gone in between."""
        self._check_process()
        self._check_outside()
        with self._changing:
            served, self._served = self._running, None
            self._ports_before = served.ports
            try:
                served.stop()
            finally:
                served.close()
            self._start()

    def stop(self) -> None:
        """Stop cleanly; a temporary directory goes away. Fine if it does not run, or not here."""
        if self._is_copy:
            return
        self._check_outside()
        with self._changing:
            self._stop()

    def _stop(self) -> None:
        served, self._served = self._served, None
        self._ports_before = ()
        self._opening.close()
        try:
            if served is not None:
                served.stop()
        finally:
            self._close(served)

    def _close(self, served: KafkaInThread | RocketMQInThread | BridgeInThread | None) -> None:
        temporary, self._temporary = self._temporary, None
        if temporary is None:
            if served is not None:
                served.close()
            return
        self.directory = ""
        try:
            if served is not None:
                served.abandon()
        finally:
            temporary.remove()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _is_bridge(
    running: KafkaInThread | RocketMQInThread | BridgeInThread,
) -> TypeIs[BridgeInThread]:
    """Tell whether both brokers are there."""
    return hasattr(running, "bridge")
