"""The control port of ``logstore serve``: brokers that fail when they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from logstore.compat.faults.control_port import ControlPort
from logstore.compat.faults.fault_control import FaultControl
from logstore.compat.kafka.broker import Broker
from logstore.compat.rocketmq.standalone import Standalone
from logstore.compat.running import call_in
from logstore.host import Host


class ServedControl:
    """What may be made to fail, and where to ask for it: `port`, 0 for any free one."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._control = FaultControl()
        #: known while it is listened there
        self.address = ""

    @property
    def host(self) -> Host:
        """The world of the brokers."""
        return self._control.host

    def take_kafka(self, broker: Broker, *, leads: bool = True) -> None:
        """Let requests and time of a Kafka broker fail; it `leads` where there are epochs."""
        from logstore.compat.kafka.faults.faulty_connection import make_faulty
        from logstore.compat.kafka.faults.leaders import move_leaders

        make_faulty(broker, self._control.faults)
        self._control.timers.append(broker.timers)
        if leads:
            self._control.move_leaders = partial(move_leaders, broker)
        if not broker.nodes.is_alone:
            self._control.nodes = broker.nodes

    def take_rocketmq(self, standalone: Standalone) -> None:
        """Let requests and time of a RocketMQ broker, and of its name server, fail."""
        from logstore.compat.rocketmq.faults.faulty_connection import make_faulty

        for service in (standalone.broker, standalone.name_server):
            if service is not None:
                make_faulty(service, self._control.faults)
                self._control.timers.append(service.timers)
        self._control.timers.append(standalone.broker.replication.timers)

    @contextmanager
    def listening(self, host: str) -> Generator[None]:
        """Answer until the end of the with statement, which stands on the brokers' event loop."""
        run = partial(call_in, asyncio.get_running_loop())
        with ControlPort(self._control, run, host, self._port) as port:
            self.address = f"http://{host}:{port.port}"
            yield
