"""What the broker's own services read is in its statistics, too: by groups of their own."""

from __future__ import annotations

from tests.compat.rocketmq.pop.pop_stage import GROUP, PopStage
from tests.compat.rocketmq.test_broker_stats import counted
from tests.compat.rocketmq.test_delays_and_retries import SCHEDULE
from tests.compat.rocketmq.test_delays_and_retries import Stage as DelayStage
from tests.compat.rocketmq.test_transactions import COMMIT, HALF, OP
from tests.compat.rocketmq.test_transactions import Stage as TransactionStage

TOPIC = "orders"
_CLUSTER = "DefaultCluster"


def test_checkpoints_and_acknowledgements_are_counted() -> None:
    """Of the broker, and by topic and group; whoever changes a time does both."""
    stage = PopStage()
    stage.produce(b"a", b"b", b"c")
    first, second, third = stage.popped()
    assert stage.ack(first).code == 0
    assert stage.ack(second).code == 0
    assert stage.change(third, 20_000).code == 0
    stage.broker.stats.sample()
    for name, times in (("CK", 2), ("ACK", 3)):
        assert counted(stage.peer, f"BROKER_{name}_NUMS", _CLUSTER) == times
        key = f"{first.message.topic}@{GROUP}"
        assert counted(stage.peer, f"GROUP_{name}_NUMS", key) == times


def test_the_revive_topic_is_read_by_a_group_of_its_own() -> None:
    """A checkpoint and two acknowledgements, when they are due."""
    stage = PopStage()
    stage.produce(b"a", b"b")
    for one in stage.popped(invisibleTime=5000):
        assert stage.ack(one).code == 0
    stage.pass_ms(9000)
    stage.broker.stats.sample()
    key = f"{stage.broker.revive_topic}@CID_RMQ_SYS_REVIVE_GROUP"
    assert counted(stage.peer, "GROUP_GET_NUMS", key) == 3
    assert counted(stage.peer, "BROKER_GET_NUMS", _CLUSTER) == 5
    assert counted(stage.peer, "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC", _CLUSTER) == 2


def test_delayed_messages_are_got_by_the_scheduler() -> None:
    """By its group, and by each level's queue."""
    stage = DelayStage()
    for _ in range(2):
        stage.peer.produce(b"later", properties="DELAY\x012\x02")
    stage.pass_ms(6000)
    stage.broker.stats.sample()
    assert counted(stage.peer, "GROUP_GET_NUMS", f"{SCHEDULE}@SCHEDULE_CONSUMER") == 2
    assert counted(stage.peer, "QUEUE_GET_NUMS", f"{SCHEDULE}@1@SCHEDULE_CONSUMER") == 2
    assert counted(stage.peer, "QUEUE_GET_SIZE", f"{SCHEDULE}@1@SCHEDULE_CONSUMER") > 100
    assert counted(stage.peer, "BROKER_GET_NUMS", _CLUSTER) is None


def test_a_check_counts_what_it_reads() -> None:
    """Op messages, and half messages that are not done."""
    stage = TransactionStage()
    stage.begin(b"done")
    stage.end(COMMIT)
    stage.begin(b"open")
    stage.broker.op_messages.write()
    stage.broker.transaction_checks.check()
    stage.broker.stats.sample()
    for topic in (HALF, OP):
        assert counted(stage.peer, "GROUP_GET_NUMS", f"{topic}@CID_RMQ_SYS_TRANS") == 1


def test_heart_beats_register_groups() -> None:
    """How often is counted; it takes no time."""
    stage = TransactionStage()
    beat = b'{"clientID":"c","consumerDataSet":[{"groupName":"g"},{"groupName":"h"}]}'
    assert stage.peer.ask(34, {}, beat).code == 0
    stage.broker.stats.sample()
    assert counted(stage.peer, "CONSUMER_REGISTER_TIME", _CLUSTER) == 0
    assert counted(stage.peer, "PRODUCER_REGISTER_TIME", _CLUSTER) == 0
