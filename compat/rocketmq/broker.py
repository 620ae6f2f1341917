"""One broker: a store, its settings and what all connections share. It has no socket or thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.clients import CLIENT_SCAN_INTERVAL_MS
from logstore.compat.rocketmq.connection import Channel, RemotingConnection
from logstore.compat.rocketmq.consumers import Consumers
from logstore.compat.rocketmq.group_commit import GroupCommit, Offload
from logstore.compat.rocketmq.held_pulls import SCAN_INTERVAL_MS, HeldPulls
from logstore.compat.rocketmq.outbox import Outbox
from logstore.compat.rocketmq.producers import Producers
from logstore.compat.rocketmq.queue_locks import QueueLocks
from logstore.compat.rocketmq.registry import HANDLERS
from logstore.compat.waiting import Timers
from logstore.errors import LogStoreError
from logstore.host import Host
from logstore.segments.rocketmq.store import Progress, RocketMQStore, StoreOptions

if TYPE_CHECKING:
    from logstore.segments.rocketmq.dispatch_request import DispatchRequest

_log = logging.getLogger(__name__)

#: how often the store's services are looked at; each of them knows when it is due
_TICK_INTERVAL_MS = 100
_IDLE_MS_MAX = 120_000


def run_at_once(work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
    """Do blocking work right here: the offload of a broker that no server drives."""
    error: BaseException | None = None
    try:
        work()
    except Exception as failure:  # noqa: BLE001 - handed to `done`, whatever it is
        error = failure
    done(error)


class Broker:
    """
    Serves one store to any number of connections.

    `advertised_host` and `advertised_port` are what the name server tells clients.
    """

    def __init__(self, host: Host, store: RocketMQStore) -> None:
        self.host = host
        self.store = store
        self.handlers = HANDLERS
        self.timers = Timers(host.clock)
        self.outbox = Outbox()
        self.offload: Offload = run_at_once
        self.idle_ms_max = _IDLE_MS_MAX
        self.advertised_host = "127.0.0.1"
        self.advertised_port = 0
        self.started_ms = host.clock.wall_ms()
        self.producers = Producers()
        self.consumers = Consumers()
        self.queue_locks = QueueLocks(host.clock.monotonic_ms)
        self.held_pulls = HeldPulls(self.timers, store.max_queue_offset)
        self.group_commit = GroupCommit(
            store.commit_log, lambda: self.offload, self.timers, timeout_ms=5000
        )
        store.add_arrival_listener(self._arrived)

    @classmethod
    def open(
        cls,
        host: Host,
        directory: str,
        settings: Mapping[str, str],
        progress: Progress | None = None,
    ) -> Broker:
        """
        Open (or create, or recover) the store in `directory` and return a broker over it.

        `settings` are Java's keys of broker and store. The directory is Java's storePathRootDir.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            StorageError: the directory cannot be served; the text says why and what to do.

        """
        store = RocketMQStore(
            host, directory, StoreOptions(settings=dict(settings), progress=progress)
        )
        try:
            return cls(host, store)
        except BaseException:
            store.abandon()  # lets go of the lock
            raise

    # connections

    def connect(self, peer_host: str, peer_port: int = 0) -> RemotingConnection:
        """Return the sans-IO side of a new connection."""
        return RemotingConnection(self, peer_host, peer_port)

    def disconnected(self, channel: Channel) -> None:
        """Forget what was kept for a connection; groups that it was in are told."""
        self.held_pulls.lost(channel)
        self.producers.lost(channel)
        with self.outbox.gathering():
            self.consumers.lost(channel)

    def requests_served(self) -> None:
        """Finish what the requests of one read began: dispatch, flush, answers to held pulls."""
        self.store.dispatch()
        self.held_pulls.wake()
        self.group_commit.begin()

    def _arrived(self, request: DispatchRequest) -> None:
        self.held_pulls.arrived(
            request.topic, request.queue_id, request.queue_offset + 1, request.tags_code
        )

    # running

    def start_housekeeping(self) -> None:
        """Start the periodic work: the store's services, silent clients, held pulls."""
        self._every(_TICK_INTERVAL_MS, self.tick)
        self._every(CLIENT_SCAN_INTERVAL_MS, self.expire_clients)
        self._every(SCAN_INTERVAL_MS, self.held_pulls.scan)

    def tick(self) -> None:
        """Run the services of the store that are due."""
        self.store.tick()
        self.requests_served()

    def expire_clients(self) -> None:
        """Hang up on clients that have sent no heart beat for too long."""
        now_ms = int(self.host.clock.monotonic_ms())
        with self.outbox.gathering():
            for channel in self.producers.expire(now_ms) + self.consumers.expire(now_ms):
                channel.hang_up()

    def _every(self, interval_ms: int, call: Callable[[], Any]) -> None:
        def run() -> None:
            self.timers.after(interval_ms, run)
            try:
                with self.outbox.gathering():
                    call()
            except (LogStoreError, OSError) as error:  # a disk may be full now and not later
                _log.error("%s: %s", self.store.directory, error)

        self.timers.after(interval_ms, run)

    def close(self) -> None:
        """Stop cleanly."""
        self.store.close()

    def abandon(self) -> None:
        """Stop without a word to the disk: the data is thrown away."""
        self.store.abandon()
