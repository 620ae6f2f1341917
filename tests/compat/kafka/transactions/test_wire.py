"""Whole transactions over the wire, as clients of version 1 and 2 hold them."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.peer import Peer, a_broker, fetch_fields, produce_fields
from tests.compat.kafka.transactions.producer import (
    GROUP,
    TransactionalClient,
    committed_values,
    group_offset,
)

SPEAKS = [1, 2]
INVALID_STATE, ABORTABLE, NOT_AUTHORIZED, FENCED, OLD_EPOCH, UNSTABLE = 48, 120, 53, 90, 47, 88


def served(host: SimulatedHost | None = None, **settings: object) -> Broker:
    """Return a broker with a topic of two partitions and a transaction log of three."""
    broker = a_broker(
        host, offsets_topic_num_partitions=2, transaction_state_log_num_partitions=3, **settings
    )
    if "t" not in broker.topics:
        broker.create_topic("t", 2)
    return broker


@pytest.mark.parametrize("speaks", SPEAKS)
def test_committed_records_are_read_and_aborted_ones_are_not(speaks: int) -> None:
    """Over two partitions; nothing before the end, and afterwards all or nothing."""
    broker = served()
    client = TransactionalClient(broker, speaks)
    assert client.init() == 0
    for is_commit, value in ((True, b"kept"), (False, b"dropped"), (True, b"last")):
        assert client.send("t", 0, value) == client.send("t", 1, value) == 0
        assert value not in committed_values(broker, "t", 0)
        assert client.end(is_commit=is_commit) == 0
    assert (
        committed_values(broker, "t", 0) == committed_values(broker, "t", 1) == [b"kept", b"last"]
    )
    assert client.epoch == (3 if speaks == 2 else 0)


@pytest.mark.parametrize("speaks", SPEAKS)
def test_offsets_count_with_their_transaction(speaks: int) -> None:
    """Pending ones are 88 for who wants stable ones; committed they count, aborted they do not."""
    broker = served()
    client = TransactionalClient(broker, speaks)
    client.init()
    for is_commit, offset, expected in ((False, 5, -1), (True, 6, 6), (False, 7, 6), (True, 8, 8)):
        before = group_offset(broker, "t")
        assert client.send_offset("t", 0, offset) == 0
        assert group_offset(broker, "t") == before
        assert group_offset(broker, "t", is_stable=True) == (UNSTABLE, -1)
        assert group_offset(broker, "t", 1, is_stable=True) == (0, -1)
        assert client.end(is_commit=is_commit) == 0
        assert group_offset(broker, "t", is_stable=True) == (0, expected)


def test_offsets_are_stored_as_a_real_broker_stores_them() -> None:
    """Each batch of 4.3.1's coordinator begins with sequence 0, and none is a repetition."""
    broker = served()
    client = TransactionalClient(broker)
    client.init()
    for offset in (5, 6):
        assert client.send_offset("t", 0, offset) == 0
    found = [
        (batch.base_sequence, batch.record_count)
        for partition in broker.topics["__consumer_offsets"].partitions.values()
        for batch in partition.batches()
        if batch.is_transactional
    ]
    assert found == [(0, 1), (0, 1)]


@pytest.mark.parametrize("speaks", SPEAKS)
@pytest.mark.parametrize("is_clean", [True, False])
def test_an_open_transaction_survives_a_restart(speaks: int, is_clean: bool) -> None:
    """Its records and offsets wait on, and its producer commits them after the restart."""
    host = SimulatedHost()
    broker = served(host)
    client = TransactionalClient(broker, speaks)
    client.init()
    client.send("t", 0, b"one")
    client.send_offset("t", 0, 4)
    if is_clean:
        broker.close()
    else:
        host.fs.process_death()
    broker = served(host)
    client.peer = Peer(broker)
    assert committed_values(broker, "t") == []
    assert group_offset(broker, "t", is_stable=True) == (UNSTABLE, -1)
    assert client.send("t", 0, b"two") == 0
    assert client.end(is_commit=True) == 0
    assert committed_values(broker, "t") == [b"one", b"two"]
    assert group_offset(broker, "t", is_stable=True) == (0, 4)


@pytest.mark.parametrize("speaks", SPEAKS)
def test_a_new_instance_takes_over(speaks: int) -> None:
    """The old one's transaction is aborted, and whatever it says then is refused."""
    broker = served()
    old, new = TransactionalClient(broker, speaks), TransactionalClient(broker, speaks)
    old.init()
    old.send("t", 0, b"lost")
    assert new.init() == 51
    assert new.init() == 0
    assert old.write("t", 0, b"late") == OLD_EPOCH
    assert old.write("t", 1, b"late") == OLD_EPOCH
    assert old.end(is_commit=True) == FENCED
    assert old.commit_offset("t", 0, 1) in (OLD_EPOCH, FENCED)
    assert new.send("t", 0, b"new") == new.end(is_commit=True) == 0
    assert committed_values(broker, "t") == [b"new"]


def test_old_versions_are_told_the_old_code() -> None:
    """Below version 2 of these requests, a producer that was shut out is 47 and not 90."""
    broker = served()
    old, new = TransactionalClient(broker, 1), TransactionalClient(broker, 1)
    old.init()
    new.init()
    for version, code in ((0, OLD_EPOCH), (1, OLD_EPOCH), (2, FENCED), (3, FENCED)):
        assert old.add("t", 0, version=version) == [code]
        assert old.add_offsets(version=version) == code
        if version:
            assert old.end(is_commit=True, version=version) == code


@pytest.mark.parametrize(
    ("version", "code"), [(3, INVALID_STATE), (9, INVALID_STATE), (10, INVALID_STATE),
                          (11, ABORTABLE), (12, 0)],
)  # fmt: skip
def test_a_partition_that_was_not_added_is_refused(version: int, code: int) -> None:
    """48, from version 11 on 120; from version 12 on the write adds it."""
    broker = served()
    client = TransactionalClient(broker, 1)
    client.init()
    assert client.write("t", 0, b"x", version=version) == code
    assert broker.topics["t"].partitions[0].end_offset == (0 if code else 1)


@pytest.mark.parametrize(("version", "code"), [(3, INVALID_STATE), (4, ABORTABLE), (5, 0)])
def test_offsets_of_a_group_that_was_not_added_are_refused(version: int, code: int) -> None:
    """48, from version 4 on 120; from version 5 on the commit adds it."""
    broker = served()
    client = TransactionalClient(broker, 1)
    client.init()
    assert client.commit_offset("t", 0, 3, version=version) == code


def test_without_verification_whatever_has_an_id_is_taken() -> None:
    """`transaction.partition.verification.enable` off, as before KIP-890."""
    broker = served(transaction_partition_verification_enable="false")
    client = TransactionalClient(broker, 1)
    client.init()
    assert client.write("t", 0, b"x") == 0


@pytest.mark.parametrize("version", [3, 9, 12])
def test_transactional_records_need_a_transactional_id(version: int) -> None:
    """Without one the whole request is 53, what nobody knows of, too."""
    broker = served()
    transactional = batch(b"x", producer=(5, 0, 0), is_transactional=True)
    parts: list[tuple[Any, list[tuple[int, bytes | None]]]] = [
        ("t", [(0, transactional), (1, batch(b"y")), (99, batch(b"y"))]),
        ("nobody", [(0, batch(b"z"))]),
    ]
    answer = Peer(broker).produce(parts, version=version)
    codes = [one["error_code"] for topic in answer.by_topic for one in topic]
    assert codes == [NOT_AUTHORIZED] * 4


def test_the_transaction_is_looked_at_before_acks() -> None:
    """What is not in it is told as such, whatever acks are asked for."""
    broker = served()
    client = TransactionalClient(broker, 1)
    client.init()
    data = batch(b"x", producer=(client.producer_id, client.epoch, 0), is_transactional=True)
    for code in (INVALID_STATE, 21):
        fields = produce_fields([("t", [(0, data)])], 9, 7)
        fields["transactional_id"] = client.transactional_id
        assert Peer(broker).ask("Produce", 9, fields).partition["error_code"] == code
        client.add("t", 0)


def test_a_request_has_one_producer() -> None:
    """Transactional batches of two producer ids in one request are 49."""
    broker = served()
    parts: list[tuple[Any, list[tuple[int, bytes | None]]]] = [
        ("t", [(0, batch(b"x", producer=(5, 0, 0), is_transactional=True)),
               (1, batch(b"x", producer=(6, 0, 0), is_transactional=True))])
    ]  # fmt: skip
    fields = produce_fields(parts, 12, -1) | {"transactional_id": "payments"}
    answer = Peer(broker).ask("Produce", 12, fields)
    assert [one["error_code"] for one in answer.by_topic[0]] == [49, 49]


def test_a_partition_that_does_not_exist_spoils_the_request() -> None:
    """It is 3, and those that exist are 55: not added."""
    broker = served()
    client = TransactionalClient(broker, 1)
    client.init()
    assert client.add("t", 0, 7, 1) == [55, 3, 55]
    assert client.write("t", 0, b"x") == INVALID_STATE


def test_a_topic_without_partitions_is_told_all_the_same() -> None:
    """And a partition that is named twice is told twice, unless something is spoilt."""
    broker = served()
    client = TransactionalClient(broker, 1)
    client.init()

    def added(*topics: tuple[str, list[int]]) -> list[tuple[str, list[int]]]:
        answer = client.peer.ask(
            "AddPartitionsToTxn", 3,
            {
                "v3_and_below_transactional_id": client.transactional_id,
                "v3_and_below_producer_id": client.producer_id,
                "v3_and_below_producer_epoch": client.epoch,
                "v3_and_below_topics": [{"name": n, "partitions": some} for n, some in topics],
            },
        ).message  # fmt: skip
        return [
            (one["name"], [each["partition_error_code"] for each in one["results_by_partition"]])
            for one in answer["results_by_topic_v3_and_below"]
        ]

    assert added(("t", [1, 1]), ("nobody", [])) == [("t", [0, 0]), ("nobody", [])]
    assert added(("t", [1]), ("t", [0])) == [("t", [0]), ("t", [0])]
    assert added(("t", [1, 1]), ("nobody", [0])) == [("t", [55]), ("nobody", [3])]


def test_brokers_ask_for_several_transactions_at_once() -> None:
    """From version 4 on: each has its own results; a question adds nothing."""
    broker = served()
    clients = [TransactionalClient(broker, 2, f"id-{number}") for number in range(2)]
    for client in clients:
        client.init()
    topics = [{"name": "t", "partitions": [0]}]

    def asked(is_question: bool) -> list[int]:
        answer = Peer(broker).ask(
            "AddPartitionsToTxn", 5,
            {
                "transactions": [
                    {**client.who, "verify_only": is_question, "topics": topics}
                    for client in clients
                ]
            },
        ).message  # fmt: skip
        assert [one["transactional_id"] for one in answer["results_by_transaction"]] == [
            "id-0", "id-1"
        ]  # fmt: skip
        return [
            one["topic_results"][0]["results_by_partition"][0]["partition_error_code"]
            for one in answer["results_by_transaction"]
        ]

    assert asked(is_question=True) == [ABORTABLE, ABORTABLE]
    assert asked(is_question=False) == [0, 0]
    assert asked(is_question=True) == [0, 0]


def test_a_timed_out_transaction_is_aborted_by_the_clock() -> None:
    """Its records stay away from readers, its producer is told that it was shut out."""
    host = SimulatedHost()
    broker = served(host)
    client = TransactionalClient(broker, 1)
    client.init(timeout_ms=5_000)
    client.send("t", 0, b"late")
    host.clock.advance(4_999)
    broker.timers.run()
    assert broker.topics["t"].partitions[0].last_stable_offset == 0
    host.clock.advance(10_000)
    broker.timers.run()
    assert broker.topics["t"].partitions[0].last_stable_offset == 2
    assert client.end(is_commit=True) == FENCED
    assert committed_values(broker, "t") == []


def test_a_reader_that_waits_is_woken_by_the_end() -> None:
    """A fetch that found nothing stable gets the records with the marker, not at its deadline."""
    broker = served()
    client = TransactionalClient(broker)
    client.init()
    client.send("t", 0, b"x")
    reader = Peer(broker)
    wanted = [("t", [{"partition": 0, "fetch_offset": 0}])]
    reader.send("Fetch", 12, fetch_fields(wanted, 12, max_wait_ms=30_000, isolation_level=1))
    assert reader.answers() == []
    client.end(is_commit=True)
    assert reader.answer().partition["last_stable_offset"] == 2


def test_a_topic_that_is_deleted_holds_nothing_up() -> None:
    """Its partitions need no marker any more; the others get theirs."""
    broker = served()
    broker.create_topic("gone", 1)
    client = TransactionalClient(broker)
    client.init()
    client.send("gone", 0, b"x")
    client.send("t", 0, b"x")
    broker.delete_topic(broker.topics["gone"])
    assert client.end(is_commit=True) == 0
    assert committed_values(broker, "t") == [b"x"]


class TestGroups:
    """Who may commit offsets in a transaction."""

    def test_a_generation_that_nobody_knows_is_illegal(self) -> None:
        """22; without a generation the group of a simple consumer comes to be."""
        client = TransactionalClient(served())
        client.init()
        assert client.commit_offset("t", 0, 1, generation_id=3, member_id="m") == 22
        assert client.commit_offset("t", 0, 1) == 0
        assert client.commit_offset("t", 0, 1, generation_id=3, member_id="m") == 25

    def test_a_group_has_a_name(self) -> None:
        """The empty one is 24."""
        client = TransactionalClient(served())
        client.init()
        assert client.commit_offset("t", 0, 1, group_id="") == 24

    def test_partitions_that_do_not_exist_are_told_one_by_one(self) -> None:
        """3 for that one; nothing is written for it."""
        broker = served()
        client = TransactionalClient(broker)
        client.init()
        assert client.commit_offset("t", 9, 1) == 3
        assert client.commit_offset("none", 0, 1) == 3

    def test_what_was_written_last_counts(self) -> None:
        """A commit outside the transaction, made after one inside it, is not undone by its end."""
        broker = served()
        client = TransactionalClient(broker)
        client.init()
        client.send_offset("t", 0, 5)
        commit_plainly(broker, offset=9)
        client.end(is_commit=True)
        assert group_offset(broker, "t") == (0, 9)

    def test_a_restart_finds_the_same(self) -> None:
        """The replay of the log decides as the running broker did."""
        host = SimulatedHost()
        broker = served(host)
        first, second = (TransactionalClient(broker, 2, name) for name in ("a", "b"))
        first.init()
        second.init()
        first.send_offset("t", 0, 1)
        second.send_offset("t", 0, 2)
        second.end(is_commit=True)
        first.end(is_commit=True)
        commit_plainly(broker, offset=7, index=1)
        first.send_offset("t", 1, 8)
        first.end(is_commit=False)
        assert [group_offset(broker, "t", index) for index in (0, 1)] == [(0, 2), (0, 7)]
        broker.close()
        broker = served(host)
        assert [group_offset(broker, "t", index) for index in (0, 1)] == [(0, 2), (0, 7)]

    def test_deleting_the_group_drops_what_is_pending(self) -> None:
        """The end of the transaction does not bring it back, nor does a restart."""
        host = SimulatedHost()
        broker = served(host)
        client = TransactionalClient(broker)
        client.init()
        client.send_offset("t", 0, 5)
        deleted = Peer(broker).ask("DeleteGroups", 2, {"groups_names": [GROUP]}).message
        assert deleted["results"][0]["error_code"] == 0
        assert client.end(is_commit=True) == 0
        assert group_offset(broker, "t", is_stable=True) == (0, -1)
        broker.close()
        assert group_offset(served(host), "t", is_stable=True) == (0, -1)


def commit_plainly(broker: Broker, *, offset: int, index: int = 0) -> None:
    """Commit an offset of the group outside of transactions."""
    partition = {"partition_index": index, "committed_offset": offset, "committed_metadata": ""}
    answer = Peer(broker).ask(
        "OffsetCommit", 8,
        {
            "group_id": GROUP, "generation_id_or_member_epoch": -1, "member_id": "",
            "topics": [{"name": "t", "partitions": [partition]}],
        },
    ).message  # fmt: skip
    assert answer["topics"][0]["partitions"][0]["error_code"] == 0


class TestAdministration:
    """DescribeTransactions, ListTransactions, WriteTxnMarkers."""

    def test_an_open_transaction_is_described(self) -> None:
        """State, timeout, since when, producer, and every partition, the offsets' too."""
        broker = served()
        client = TransactionalClient(broker)
        client.init(timeout_ms=7_000)
        client.send("t", 1, b"x")
        client.send_offset("t", 0, 5)
        answer = Peer(broker).ask(
            "DescribeTransactions", 0, {"transactional_ids": ["payments", "nobody", ""]}
        ).message  # fmt: skip
        mine, nobody, empty = answer["transaction_states"]
        assert mine["error_code"] == 0
        assert (mine["transaction_state"], mine["transaction_timeout_ms"]) == ("Ongoing", 7_000)
        assert (mine["producer_id"], mine["producer_epoch"]) == (client.producer_id, 0)
        assert mine["transaction_start_time_ms"] == broker.host.clock.wall_ms()
        topics = {one["topic"]: one["partitions"] for one in mine["topics"]}
        assert topics["t"] == [1]
        assert set(topics) == {"t", "__consumer_offsets"}
        assert (nobody["error_code"], empty["error_code"]) == (105, 42)

    def test_transactions_are_listed(self) -> None:
        """With filters by state (unknown ones are told), producer, duration and pattern."""
        host = SimulatedHost()
        broker = served(host)
        clients = [TransactionalClient(broker, 2, name) for name in ("a-1", "a-2", "b-1")]
        for client in clients:
            client.init()
        clients[0].send("t", 0, b"x")
        host.clock.advance(100)

        def listed(version: int = 2, **filters: Any) -> tuple[int, list[str], list[str]]:
            fields: dict[str, Any] = {"state_filters": [], "producer_id_filters": [], **filters}
            answer = Peer(broker).ask("ListTransactions", version, fields).message
            names = sorted(one["transactional_id"] for one in answer["transaction_states"])
            return answer["error_code"], names, answer["unknown_state_filters"]

        assert listed(0) == (0, ["a-1", "a-2", "b-1"], [])
        assert listed(state_filters=["Ongoing", "Nothing"]) == (0, ["a-1"], ["Nothing"])
        assert listed(producer_id_filters=[clients[2].producer_id]) == (0, ["b-1"], [])
        assert listed(state_filters=["Ongoing"], duration_filter=100) == (0, [], [])
        assert listed(state_filters=["Ongoing"], duration_filter=99) == (0, ["a-1"], [])
        assert listed(state_filters=["Nothing", "Nothing"])[2] == ["Nothing"], "told once"
        assert listed(transactional_id_pattern="a-.") == (0, ["a-1", "a-2"], [])
        assert listed(transactional_id_pattern="(") == (128, [], [])

    def test_an_id_that_is_no_text_does_not_hide_the_others(self) -> None:
        """As in Java what is no UTF-8 is replaced as it is read: every answer can be written."""
        broker = served()
        sender = Peer(broker)
        for version in (1, 5):  # the fields before and since there are varints
            asked = {"transactional_id": f"odd-{version}", "transaction_timeout_ms": 60_000}
            if version >= 3:
                asked |= {"producer_id": -1, "producer_epoch": -1}
            frame = sender.encoded("InitProducerId", version, asked)
            odd = frame.replace(b"odd", b"o\xffd")
            assert (
                sender.send_frame("InitProducerId", version, odd).answer().message["error_code"]
                == 0
            )
        TransactionalClient(broker).init()
        fields: dict[str, Any] = {"state_filters": [], "producer_id_filters": []}
        listed = Peer(broker).ask("ListTransactions", 0, fields).message["transaction_states"]
        names = sorted(one["transactional_id"] for one in listed)
        assert names == ["o\ufffdd-1", "o\ufffdd-5", "payments"]
        described = Peer(broker).ask("DescribeTransactions", 0, {"transactional_ids": names})
        assert [one["error_code"] for one in described.message["transaction_states"]] == [0] * 3

    @pytest.mark.parametrize("version", [1, 2])
    def test_a_hanging_transaction_can_be_ended_by_hand(self, version: int) -> None:
        """The marker goes where the request says; unknown partitions are 3, old producers 47."""
        broker = served()
        client = TransactionalClient(broker)
        client.init()
        client.send("t", 0, b"x")
        log = broker.topics["t"].partitions[0]
        assert log.last_stable_offset == 0

        def written(epoch: int, index: int, coordinator_epoch: int = 0) -> int:
            marker = {
                "producer_id": client.producer_id, "producer_epoch": epoch,
                "transaction_result": False, "coordinator_epoch": coordinator_epoch,
                "topics": [{"name": "t", "partition_indexes": [index]}],
            }  # fmt: skip
            if version == 2:
                marker["transaction_version"] = 0
            answer = Peer(broker).ask("WriteTxnMarkers", version, {"markers": [marker]}).message
            code: int = answer["markers"][0]["topics"][0]["partitions"][0]["error_code"]
            return code

        assert written(5, 0, 4) == 0
        assert log.last_stable_offset == log.end_offset == 2
        assert (written(4, 0, 4), written(5, 0, 3), written(5, 9, 4)) == (47, 52, 3)
        client.producer_id = -1
        assert (written(5, 0, 4), log.end_offset) == (-1, 2)
