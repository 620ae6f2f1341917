"""A logic queue may move as often as it likes: nothing is lost, and order stays."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.static_topics.static_stage import NAMES, StaticStage, item

#: what mqadmin leaves between two stretches, less so that a test can be read
BLOCK = 100
moves = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(1, 5)), min_size=1, max_size=5
).filter(lambda drawn: all(one[0] != two[0] for one, two in pairwise(drawn)))


def move(stage: StaticStage, drawn: list[tuple[str, int]]) -> list[tuple[int, bytes]]:
    """Send to a logic queue on one broker after the other; return offsets and bodies."""
    items: list[dict[str, object]] = []
    sent: list[tuple[int, bytes]] = []
    for gen, (name, count) in enumerate(drawn):
        if items:
            items[-1] = {**items[-1], "endOffset": drawn[gen - 1][1]}
        queue_id = sum(one["bname"] == name for one in items)
        items.append(item(gen, name, gen * BLOCK, queue_id=queue_id))
        stage.map_everywhere({0: items}, epoch=gen + 1)
        for number in range(count):
            body = f"{gen}-{number}".encode()
            answer = stage.peers[name].produce(body)
            sent.append((gen * BLOCK + number, body))
            assert (answer.fields or {})["queueOffset"] == str(sent[-1][0])
    return sent


@given(drawn=moves)
@settings(max_examples=8)
def test_all_is_read_in_order(drawn: list[tuple[str, int]]) -> None:
    """Whoever leads at last gives out everything that was sent, each at the offset it got."""
    stage = StaticStage()
    sent = move(stage, drawn)
    leader = drawn[-1][0]
    assert stage.read(leader) == sent
    assert stage.number(leader, RequestCode.GET_MIN_OFFSET) == 0
    assert stage.number(leader, RequestCode.GET_MAX_OFFSET) == sent[-1][0] + 1


@given(drawn=moves, data=st.data())
@settings(max_examples=8)
def test_a_group_goes_on_where_it_was(drawn: list[tuple[str, int]], data: st.DataObject) -> None:
    """What a group commits it is told, as long as it does not go back to an older stretch."""
    stage = StaticStage()
    sent = move(stage, drawn)
    leader = drawn[-1][0]
    stage.pull(leader, 0)
    places = sorted(data.draw(st.lists(st.sampled_from([offset for offset, _ in sent]))))
    fields = {"consumerGroup": "g", "topic": "orders", "queueId": 0}
    for offset in places:
        for name in {name for name, _ in drawn}:
            stage.brokers[name].groups.find("g")
        code = RequestCode.UPDATE_CONSUMER_OFFSET
        assert stage.ask(leader, code, {**fields, "commitOffset": offset}).code == 0
        assert stage.number(leader, RequestCode.QUERY_CONSUMER_OFFSET, consumerGroup="g") == offset
