"""Clients of the proxy: what they are told to do, who the broker takes them for, how they go."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from logstore.compat.grpc.status import CallError, GrpcCode
from logstore.compat.rocketmq.proxy import proxy as proxy_module
from logstore.compat.rocketmq.proxy.codes import ClientType, Code, MessageType
from logstore.compat.rocketmq.proxy.failures import ProxyError
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from tests.compat.rocketmq.broker_peer import Peer as RemotingPeer
from tests.compat.rocketmq.proxy.proxy_stage import GROUP, Peer, Stage

TRANSACTION: dict[str, Any] = {"kind": MessageType.TRANSACTION}


@pytest.fixture
def stage() -> Stage:
    """Return a proxy before a broker."""
    return Stage()


def test_a_producer_is_told_what_to_do(stage: Stage) -> None:
    """How often it may try, how much it may send; and hears what it has said itself."""
    told = Peer(stage).produce_to("normal")
    assert told["status"]["code"] == Code.OK
    settings = told["settings"]
    assert settings["publishing"] == {
        "topics": [{"name": "normal"}], "max_body_size": 4194304, "validate_message_type": True,
    }  # fmt: skip
    assert settings["backoff_policy"] == {
        "max_attempts": 3,
        "exponential_backoff": {"initial": "0.010s", "max": "1s", "multiplier": 2.0},
    }


def test_a_consumer_is_told_what_its_group_is(stage: Stage) -> None:
    """How many at a time, for how long it may wait, and how often it is tried."""
    settings = Peer(stage).consume("normal")["settings"]
    subscription = settings["subscription"]
    assert subscription["receive_batch_size"] == 32
    assert subscription["long_polling_timeout"] == "20s"
    assert subscription["fifo"] is False
    policy = settings["backoff_policy"]
    assert policy["max_attempts"] == 17
    assert policy["customized_backoff"]["next"][:4] == ["1s", "5s", "10s", "30s"]


def test_retry_policies_of_groups(stage: Stage) -> None:
    """Are told as the group's settings have them."""
    exponential = {"initial": 2000, "max": 60_000, "multiplier": 3}
    policy = {"type": "EXPONENTIAL", "exponentialRetryPolicy": exponential}
    config = stage.broker.groups.require(GROUP)
    stage.broker.groups.put(attrs.evolve(config, group_retry_policy=policy))
    told = Peer(stage).consume("normal")["settings"]["backoff_policy"]
    assert told["exponential_backoff"] == {"initial": "2s", "max": "60s", "multiplier": 3.0}


def test_the_broker_knows_them(stage: Stage) -> None:
    """By the id that they give themselves; heart beats keep them, leaving takes them out."""
    consumer, producer = Peer(stage, "reader-1"), Peer(stage, "writer-1")
    consumer.consume("normal", ClientType.PUSH_CONSUMER)
    producer.produce_to("normal")
    group = stage.broker.consumers.group(GROUP)
    assert group is not None
    assert group.client_ids() == ["reader-1"]
    for _ in range(6):
        stage.let_pass(30_000)
        told = consumer.ask("Heartbeat", client_type=2, group={"name": GROUP})
        assert told["status"]["code"] == Code.OK
    assert stage.broker.consumers.group(GROUP) is not None
    told = consumer.ask("NotifyClientTermination", group={"name": GROUP})
    assert told["status"]["code"] == Code.OK
    assert stage.broker.consumers.group(GROUP) is None
    told = consumer.ask("Heartbeat", client_type=2, group={"name": GROUP})
    assert told["status"]["code"] == Code.UNRECOGNIZED_CLIENT_TYPE


def test_who_is_not_heard_of_is_forgotten(stage: Stage) -> None:
    """Unless it listens."""
    gone, listening = Peer(stage, "gone"), Peer(stage, "listening")
    gone.produce_to("normal")
    listening.produce_to("normal")
    gone.stop_listening()
    stage.let_pass(140_000)
    assert list(stage.proxy.clients) == ["listening"]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"publishing": {"topics": [{"name": "a b"}]}}, Code.ILLEGAL_TOPIC),
        ({"subscription": {"group": {"name": ""}}}, Code.ILLEGAL_CONSUMER_GROUP),
    ],
)
def test_settings_that_are_none(stage: Stage, settings: dict[str, Any], code: Code) -> None:
    """End the stream with the reason."""
    with pytest.raises(ProxyError) as caught:
        Peer(stage).listen(**settings)
    assert caught.value.code == code


def test_settings_that_say_nothing(stage: Stage) -> None:
    """End the stream with no more than the reason."""
    with pytest.raises(CallError, match=r"^there is no publishing or subscription") as caught:
        Peer(stage).listen(client_type=1)
    assert caught.value.code == GrpcCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (0, "CLIENT_TYPE_UNSPECIFIED"),
        (1, "PRODUCER"),
        (4, "PULL_CONSUMER"),
        (6, "LITE_SIMPLE_CONSUMER"),
        (99, "UNRECOGNIZED"),
    ],
)
def test_who_reads_is_a_consumer(stage: Stage, kind: int, name: str) -> None:
    """Of those that are served; the others are told by their names, and are nothing yet."""
    peer = Peer(stage)
    with pytest.raises(ProxyError, match=f"^Client type is not consumer, type: {name}$") as caught:
        peer.listen(client_type=kind, subscription={"group": {"name": GROUP}})
    assert caught.value.code == Code.INTERNAL_SERVER_ERROR
    told = peer.ask("Heartbeat", client_type=kind)
    assert told["status"]["message"] == "cannot find client settings for this client"


def test_who_sends_may_be_anybody(stage: Stage) -> None:
    """Whose heart beats are for nobody, then; what nobody knows is refused."""
    peer = Peer(stage)
    topics = {"topics": [{"name": "normal"}]}
    assert peer.listen(client_type=6, publishing=topics)["status"]["code"] == Code.OK
    told = peer.ask("Heartbeat", client_type=6)["status"]
    assert told == {"code": Code.UNRECOGNIZED_CLIENT_TYPE, "message": "LITE_SIMPLE_CONSUMER"}
    with pytest.raises(ProxyError, match="get the number of an unknown enum value"):
        Peer(stage).listen(client_type=99, publishing=topics)


def test_routes(stage: Stage) -> None:
    """Every queue of a topic with what it takes, where the client has found the proxy."""
    stage.proxy.port = 4711
    told = Peer(stage).ask("QueryRoute", topic={"name": "mixed"})
    queues = told["message_queues"]
    assert [queue.get("id", 0) for queue in queues] == [0, 1, 2, 3]
    assert queues[0]["accept_message_types"] == [1, 2, 3, 4]
    assert queues[0]["permission"] == 4
    endpoints = queues[0]["broker"]["endpoints"]
    assert endpoints == {"scheme": 1, "addresses": [{"host": "127.0.0.1", "port": 4711}]}
    behind = {"scheme": 3, "addresses": [{"host": "proxy.test", "port": 8081}]}
    told = Peer(stage).ask("QueryRoute", topic={"name": "mixed"}, endpoints=behind)
    assert told["message_queues"][0]["broker"]["endpoints"] == behind
    told = Peer(stage).ask("QueryRoute", topic={"name": "none"})
    assert told["status"]["code"] == Code.TOPIC_NOT_FOUND


def test_the_end_of_a_transaction(stage: Stage) -> None:
    """Only what is committed is seen; what is unknown cannot end."""
    producer = Peer(stage)
    producer.produce_to("transaction")
    reader = RemotingPeer(stage.broker)

    def end(transaction_id: str, resolution: int, topic: str = "transaction") -> Code:
        told = producer.ask(
            "EndTransaction", topic={"name": topic}, message_id="m",
            transaction_id=transaction_id, resolution=resolution, source=1,
        )  # fmt: skip
        return Code(told["status"]["code"])

    for body, resolution in ((b"yes", 1), (b"no", 2)):
        told = producer.send(producer.message("transaction", body, **TRANSACTION))
        transaction_id = told["entries"][0]["transaction_id"]
        assert end(transaction_id, resolution, "mixed") == Code.INTERNAL_SERVER_ERROR
        assert end(transaction_id, resolution) == Code.OK
        assert end(transaction_id, resolution) == Code.INTERNAL_SERVER_ERROR
    assert end("", 1) == Code.INVALID_TRANSACTION_ID
    found = [one.body for queue in range(4) for one in reader.messages("transaction", queue)]
    assert found == [b"yes"]


def test_a_transaction_that_nobody_ended(stage: Stage) -> None:
    """Its producer is asked, and its answer counts."""
    producer = Peer(stage)
    producer.produce_to("transaction")
    told = producer.send(producer.message("transaction", b"half", {"x": "y"}, **TRANSACTION))
    message_id = told["entries"][0]["message_id"]
    for _ in range(4):
        stage.let_pass(30_000)
        producer.ask("Heartbeat", client_type=1)
    asked = producer.heard[0]["recover_orphaned_transaction_command"]
    assert asked["message"]["body"] == "aGFsZg=="
    assert asked["message"]["topic"] == {"name": "transaction"}
    assert asked["message"]["user_properties"] == {
        "x": "y", "__transactionId__": message_id, "TRANSACTION_CHECK_TIMES": "1",
    }  # fmt: skip
    assert asked["message"]["system_properties"]["message_id"] == message_id
    told = producer.ask(
        "EndTransaction", topic={"name": "transaction"}, message_id=message_id,
        transaction_id=asked["transaction_id"], resolution=1, source=2,
    )  # fmt: skip
    assert told["status"]["code"] == Code.OK
    reader = RemotingPeer(stage.broker)
    found = [one.body for queue in range(4) for one in reader.messages("transaction", queue)]
    assert found == [b"half"]


def test_transactions_that_never_end_take_no_memory(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are forgotten; the broker's question brings them back."""
    monkeypatch.setattr(proxy_module, "_TRANSACTION_COUNT_MAX", 2)
    producer = Peer(stage)
    producer.produce_to("transaction")
    ids: list[str] = []
    for _ in range(3):
        told = producer.send(producer.message("transaction", b"half", **TRANSACTION))
        ids.append(told["entries"][0]["transaction_id"])
    assert list(stage.proxy.transactions) == [("transaction", one) for one in ids[1:]]


def test_answers_of_clients_are_taken(stage: Stage) -> None:
    """What a client reports of itself is no reason to hang up."""
    peer = Peer(stage)
    peer.produce_to("normal")
    take = stage.proxy.telemetry(peer.caller, peer.hear)
    take(MESSAGES["TelemetryCommand"](thread_stack_trace={"nonce": "n"}))
    take(MESSAGES["TelemetryCommand"](verify_message_result={"nonce": "n"}))
    assert peer.heard == []


def test_a_connection_that_the_broker_has_closed(stage: Stage) -> None:
    """Is made anew, and the client goes on as what it was."""
    peer = Peer(stage)
    peer.produce_to("normal")
    stage.proxy.clients[peer.client_id].link.close()
    assert peer.send(peer.message("normal"))["status"]["code"] == Code.OK
    told = peer.ask("Heartbeat", client_type=1)
    assert told["status"]["code"] == Code.OK
