"""The queues of a RocketMQ broker, as the partitions over them use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.bridge.kafka_over_rocketmq.queue_births import QueueBirths
from logstore.compat.bridge.kafka_over_rocketmq.queue_reads import QueueReads
from logstore.compat.bridge.kafka_over_rocketmq.queue_sizes import QueueSizes
from logstore.compat.bridge.late_loops import LateLoops
from logstore.segments.rocketmq.messages.message_draft import MessageDraft

if TYPE_CHECKING:
    from logstore.compat.bridge.compiled.loops import CompiledRunDraft
    from logstore.compat.bridge.kafka_over_rocketmq.producer_journal import ProducerJournal
    from logstore.compat.bridge.kafka_over_rocketmq.queue_starts import QueueStarts
    from logstore.compat.bridge.kafka_over_rocketmq.record_drafts import RecordRunDraft
    from logstore.compat.bridge.noted_topics import NotedTopics
    from logstore.compat.rocketmq.broker import Broker as RocketMQBroker
    from logstore.segments.rocketmq.messages.host_address import HostAddress
    from logstore.segments.rocketmq.messages.message_run import MessageRun
    from logstore.segments.rocketmq.putting.put_result import PutResult


class Queues:
    """Puts into queues and reads them, and has the broker do what follows a put."""

    def __init__(
        self,
        rocketmq: RocketMQBroker,
        noted: NotedTopics,
        starts: QueueStarts,
        journal: ProducerJournal,
    ) -> None:
        self.journal = journal
        self.noted = noted
        self.starts = starts
        self.rocketmq = rocketmq
        self.store = rocketmq.store
        self.loops = LateLoops()
        self.reads = QueueReads(rocketmq.store, self.loops)
        self.births = QueueBirths(self.reads)
        self.sizes = QueueSizes(rocketmq.store)

    @property
    def host(self) -> HostAddress:
        """Where messages are said to be born and stored."""
        return self.rocketmq.store_host

    def put(self, draft: MessageDraft | RecordRunDraft | CompiledRunDraft) -> PutResult:
        """Put messages; they can be read soon after. Raises OSError: nothing was put."""
        if isinstance(draft, MessageDraft):
            result = self.store.put_message(draft, is_delivery=True)
        else:
            if draft.has_rests:
                self.noted.note(draft.topic)
            result = self.store.put_batch(draft)
        self.served()
        return result

    def put_run(self, run: MessageRun) -> bool:
        """Put plain messages together; False, and nothing done, where they go singly only."""
        if not self.store.put_run(run):
            return False
        self.served()
        return True

    def flush(self) -> None:
        """Make all messages durable. Raises WriteFailedError, OSError."""
        commit_log = self.store.commit_log
        task = commit_log.begin_flush()
        task.run()
        commit_log.end_flush(task)
        self.served()

    def forget(self, topic: str) -> None:
        """Forget a topic that is gone. Raises OSError."""
        self.reads.forget(topic)
        self.births.forget(topic)
        self.sizes.forget(topic)
        self.starts.forget(topic)
        self.journal.rewrite()

    def catch_up(self) -> None:
        """Have all that was put in its queue, for whoever asks about queues now."""
        self.rocketmq.catch_up()

    def served(self) -> None:
        """Have what was put, or became durable, dispatched and told to whoever waits."""
        self.rocketmq.requests_served()
