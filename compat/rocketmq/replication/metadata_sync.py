"""
A slave takes over its master's tables: topics, groups, committed offsets, delay offsets.

It asks by remoting, at once when it learns of a master and then again and again. What cannot be
had or read leaves the table as it is. (``SlaveSynchronize``)
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.rocketmq.connection import Channel, RemotingConnection
from logstore.compat.rocketmq.replication.follower import host_and_port
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.errors import StorageError
from logstore.segments.rocketmq.queues.other_kind import KindMender
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.java_json import JsonError, parse_json
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError, as_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.registrar import Reach
    from logstore.compat.rocketmq.registry import Handlers
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.segments.rocketmq.tables.json_table import JsonTable

__all__ = ["MetadataSync"]

_log = logging.getLogger(__name__)

#: 4.9.8 asks every ten seconds, 5.5.0 every minute
SYNC_INTERVAL_MS = 10_000
#: until the tables were taken over once
_FIRST_INTERVAL_MS = 1000
_TIMEOUT_MS = 30_000
_OFFSETS = "offsetTable"


@attrs.frozen
class _Question:
    """What is asked for, and who takes the body of the answer."""

    code: RequestCode
    take: Callable[[dict[Any, Any]], None]


class MetadataSync:
    """
    Keeps a slave's tables like its master's. Also the service behind the one connection to it.

    `reach` makes connections.
    """

    def __init__(self, broker: Broker, reach: Reach) -> None:
        self.handlers: Handlers = {}
        self.timers = broker.timers
        self.outbox = Outbox()
        #: nobody sends here
        self.send_run = None
        #: the master's host and port, "" while nobody knows
        self.address = ""
        #: how often all tables were taken over
        self.rounds = 0
        self._broker = broker
        self._reach = reach
        self._channel: Channel | None = None
        self._is_reaching = False
        self._is_stopped = False
        #: topics were taken over that are not written down yet
        self._has_new_topics = False
        self._kinds = KindMender(broker.store)
        self._questions = (
            _Question(RequestCode.GET_ALL_TOPIC_CONFIG, self._take_topics),
            _Question(RequestCode.GET_ALL_CONSUMER_OFFSET, self._take_offsets),
            _Question(RequestCode.GET_ALL_DELAY_OFFSET, self._take_delay_offsets),
            _Question(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, self._take_groups),
        )

    def follow(self, address: str) -> None:
        """Take over the tables of the broker at that ``host:port``, from now on."""
        if address == self.address or self._is_stopped or host_and_port(address) is None:
            return
        is_first = not self.address
        self.address = address
        if self._channel is not None:
            self._channel.hang_up()
            self._channel = None
        if is_first:
            self._run()
        else:
            self.sync()

    def stop(self) -> None:
        """Ask no more."""
        self._is_stopped = True
        if self._channel is not None:
            self._channel.hang_up()

    def _run(self) -> None:
        if not self._is_stopped:
            delay_ms = SYNC_INTERVAL_MS if self.rounds else _FIRST_INTERVAL_MS
            self.timers.after(delay_ms, self._run)
            self.sync()

    def sync(self) -> None:
        """Ask for all tables now."""
        found = host_and_port(self.address)
        if found is None or self._is_reaching:
            return
        if self._channel is not None and self._channel.is_open:
            self._ask(self._channel)
            return
        self._is_reaching = True
        self._reach(*found, self._reached, self._not_reached)

    # the connection

    def requests_served(self) -> None:
        """Do nothing: masters ask slaves for nothing that is served here."""

    def disconnected(self, channel: Channel) -> None:
        """Connect anew with the next round."""
        if self._channel is channel:
            self._channel = None

    def _reached(self, host: str, port: int) -> RemotingConnection:
        connection = RemotingConnection(self, host, port)
        channel = self._channel = connection.channel
        channel.sign = self._broker.sign
        self._is_reaching = False
        # What is said before the driver has the connection goes out when it is asked first.
        self.timers.after(0, lambda: self._ask(channel))
        return connection

    def _not_reached(self, error: Exception) -> None:
        self._is_reaching = False
        _log.warning("master %s cannot be reached: %s", self.address, error)

    # the tables

    def _ask(self, channel: Channel) -> None:
        if channel is self._channel:
            self._ask_for(channel, 0)

    def _ask_for(self, channel: Channel, number: int) -> None:
        """Ask for one table, and when it is there for the next."""
        question = self._questions[number]

        def answered(answer: Command) -> None:
            self._answered(question, answer)
            if number + 1 < len(self._questions):
                self._ask_for(channel, number + 1)
            else:
                self.rounds += 1

        def failed(error: Exception) -> None:
            _log.warning("master %s: %s: %s", self.address, question.code.name, error)

        channel.ask(question.code, timeout_ms=_TIMEOUT_MS).then(answered, failed)

    def _answered(self, question: _Question, answer: Command) -> None:
        name = question.code.name
        if answer.code != ResponseCode.SUCCESS:
            _log.warning("master %s: %s: %s", self.address, name, answer.remark)
            return
        if not answer.body:
            return  # as 4.9.8's answer where there is nothing to tell
        try:
            question.take(as_object(parse_json(bytes(answer.body).decode())))
        except (JsonError, JsonTypeError, UnicodeDecodeError, OSError, StorageError) as error:
            _log.error("master %s: %s: %s", self.address, name, error)

    def _take_topics(self, content: dict[Any, Any]) -> None:
        table = self._broker.store.topic_table
        if self._take_if_new(table, table.data_version, content, "topicConfigTable"):
            self._broker.topics.routes.clear()
            self._has_new_topics = True
        if self._has_new_topics:
            self._kinds.mend()  # first: no start takes queues of other kinds than the table says
            table.persist()
            self._has_new_topics = False

    def _take_groups(self, content: dict[Any, Any]) -> None:
        table = self._broker.store.subscription_groups
        names = "subscriptionGroupTable", "forbiddenTable"
        if self._take_if_new(table, table.data_version, content, *names):
            table.persist()

    def _take_if_new(
        self, table: JsonTable, known: DataVersion, content: dict[Any, Any], *names: str
    ) -> bool:
        """Replace a table unless its version is the same; tell whether it was replaced."""
        _require(content, names[0])
        if DataVersion.from_json(content.get("dataVersion")) == known:
            return False
        kept = {name: content[name] for name in ("dataVersion", *names) if name in content}
        table.take_json(kept)
        return True

    def _take_offsets(self, content: dict[Any, Any]) -> None:
        """Take over committed offsets; what only the slave knows stays."""
        _require(content, _OFFSETS)
        table = self._broker.store.consumer_offsets
        merged = table.to_json()
        given = as_object(content.get(_OFFSETS))
        merged[_OFFSETS] = {**as_object(merged.get(_OFFSETS)), **given}
        if "dataVersion" in content:
            merged["dataVersion"] = content["dataVersion"]
        table.take_json(merged)
        table.is_dirty = True

    def _take_delay_offsets(self, content: dict[Any, Any]) -> None:
        _require(content, _OFFSETS)
        table = self._broker.store.delay_offsets
        table.take_json(content)
        table.is_dirty = True


def _require(content: dict[Any, Any], name: str) -> None:
    """Refuse a body without its table: it must not empty ours."""
    if not isinstance(content.get(name), dict):
        raise JsonTypeError(f"there is no {name} in it")
