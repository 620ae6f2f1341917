"""Share groups over queues: batches are made for a fetch, so a member gets as many as it wants."""

from __future__ import annotations

from logstore.compat.kafka.share_state.persister import SharePartitionKey
from logstore.segments.kafka.record import Record, decode_records
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import open_bridge, produce
from tests.compat.kafka.share_reads.member import Member, got, partition_of

NOW_MS = 1_700_000_000_000
ACCEPT = 1


def test_a_member_gets_no_more_than_it_wants() -> None:
    """Not a whole batch, which nobody has produced; the next fetch goes on behind."""
    bridge = open_bridge("rocketmq", SimulatedHost(seed=1))
    broker = bridge.kafka
    topic_id = broker.create_topic("t", 1).topic_id
    broker.store.metadata.change_resource(32, "g", {"share.auto.offset.reset": "earliest"})
    key = SharePartitionKey("g", topic_id, 0)
    assert broker.share_state.initialize(key, 1, -1).error_code == 0
    produce(bridge, "t", [Record(n, NOW_MS, None, b"%d" % n) for n in range(10)])

    member, wanted = Member(broker), {topic_id: [0]}
    answer = member.fetch(0, wanted, max_records=4)
    assert got(answer) == "0-3"
    values = [record.value for record in decode_records(partition_of(answer).records)]
    assert values[:4] == [b"0", b"1", b"2", b"3"]
    assert got(Member(broker, "B").fetch(0, wanted, max_records=3)) == "4-6"

    said = {(topic_id, 0): [(0, 3, (ACCEPT,))]}
    assert got(member.fetch(1, wanted, said=said, max_records=100)) == "7-9"
