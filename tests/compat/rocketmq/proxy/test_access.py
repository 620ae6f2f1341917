"""Access control at the proxy: who signs his requests with a header, and may have what he asks."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import attrs
import pytest

from logstore.compat.rocketmq.auth.settings import LOCAL_PROVIDERS
from logstore.compat.rocketmq.proxy.failures import StreamEndedError
from logstore.compat.rocketmq.proxy.proxy import Caller
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.segments.rocketmq.tables.access import CUSTOM, Acl, Policy, PolicyEntry, User
from tests.compat.rocketmq.proxy.proxy_stage import Peer, Stage

TIME = "20260101T000000Z"
UNAUTHORIZED = 40100
ON = {**LOCAL_PROVIDERS, "authenticationEnabled": "true", "authorizationEnabled": "true"}


def authorization(name: str, password: str) -> str:
    """Return the header of a client who signs."""
    digest = hmac.new(password.encode(), TIME.encode(), hashlib.sha1).hexdigest()
    return f"MQv2-HMAC-SHA1 Credential={name}/r/s, SignedHeaders=x-mq-date-time, Signature={digest}"


class Client(Peer):
    """A client with headers of its own."""

    def __init__(self, stage: Stage, client_id: str | None = None, **headers: Any) -> None:
        super().__init__(stage, client_id)
        self.headers = {"authorization": authorization("alice", "pw"), "date_time": TIME, **headers}

    @property
    def caller(self) -> Caller:
        """What the proxy knows of a request."""
        return attrs.evolve(super().caller, **self.headers)

    def told(self, name: str, **fields: Any) -> tuple[int, str]:
        """Return the status of an answer."""
        found: list[Any] = []
        self.begin(name, **fields).then(found.append)
        answer: Any = found[0][0] if name == "ReceiveMessage" else found[0]
        return answer.status.code, answer.status.message


def a_stage(**settings: str) -> Stage:
    """Return a proxy with alice, who may write to ``normal`` and read it as ``readers``."""
    stage = Stage(has_wheel=False, **{**ON, **settings})
    entries = (
        PolicyEntry("Topic:normal", ("Pub", "Sub"), "Allow"),
        PolicyEntry("Group:readers", ("Sub",), "Allow"),
    )
    access = stage.broker.access
    access.put_user(User("alice", "pw"))
    access.put_acl(Acl("User:alice", (Policy(CUSTOM, entries),)))
    return stage


ROUTE = {"topic": {"name": "normal"},
         "endpoints": {"scheme": 1, "addresses": [{"host": "h", "port": 1}]}}  # fmt: skip


def test_who_signs_is_served() -> None:
    """Broker's requests of his are not looked at once more: he has signed none of them."""
    alice = Client(a_stage())
    assert alice.told("QueryRoute", **ROUTE)[0] == 20000
    alice.produce_to("normal")
    assert alice.told("SendMessage", messages=[alice.message("normal")])[0] == 20000


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"authorization": ""}, "username cannot be null."),
        ({"date_time": ""}, "datetime is null."),
        ({"date_time": "20260101T000001Z"}, "check signature failed."),
        ({"authorization": "MQv2"}, "authentication header is incorrect."),
        ({"authorization": authorization("bob", "pw")}, "User:bob is not found."),
        ({"authorization": authorization("alice", "x")}, "check signature failed."),
        ({"authorization": "x Credential=alice"}, "check signature failed."),
        ({"authorization": "x Credential=alice, Signature=zz"},
         "create authentication context error."),
        ({"authorization": "x Credential"},
         "authentication keyValues length is incorrect, actual length=1."),
        ({"authorization": "x Credential=//"},
         "authentication credential length is incorrect, actual length=0."),
    ],
)  # fmt: skip
def test_signatures(headers: dict[str, str], message: str) -> None:
    """Of the header's parts Java's words say what is wrong."""
    alice = Client(a_stage(authorizationEnabled="false"), **headers)
    assert alice.told("QueryRoute", **ROUTE) == (UNAUTHORIZED, message)


def test_a_name_in_another_header_is_not_believed() -> None:
    """Whoever signs is who signed; only where nobody must sign that header counts."""
    root = {"access_key": "root"}
    asked = {**ROUTE, "topic": {"name": "fifo"}}
    stage = a_stage()
    stage.broker.access.put_user(User("root", "pw", "Super"))
    assert Client(stage, **root).told("QueryRoute", **asked)[0] == UNAUTHORIZED
    stage = a_stage(authenticationEnabled="false")
    stage.broker.access.put_user(User("root", "pw", "Super"))
    assert Client(stage, **root).told("QueryRoute", **asked)[0] == 20000
    assert Client(stage).told("QueryRoute", **asked) == (
        UNAUTHORIZED,
        "Authorization failed. Please verify your access rights and try again.",
    )


OTHER = {"group": {"name": "others"}}
READERS = {"group": {"name": "readers"}}


@pytest.mark.parametrize(
    ("name", "fields", "wanted"),
    [
        ("QueryRoute", {"topic": {"name": "fifo"}}, "Topic:fifo"),
        ("SendMessage", {"messages": [{"topic": {"name": "fifo"}}]}, "Topic:fifo"),
        ("RecallMessage", {"topic": {"name": "fifo"}}, "Topic:fifo"),
        ("EndTransaction", {"topic": {"name": "fifo"}}, "Topic:fifo"),
        *(("Heartbeat", {"client_type": kind, **OTHER}, "Group:others") for kind in (2, 3, 4)),
        ("ReceiveMessage", {**OTHER, "message_queue": {"topic": {"name": "normal"}}},
         "Group:others"),
        ("AckMessage", {**READERS, "topic": {"name": "fifo"}}, "Topic:fifo"),
        ("ForwardMessageToDeadLetterQueue", {**OTHER, "topic": {"name": "normal"}},
         "Group:others"),
        ("NotifyClientTermination", OTHER, "Group:others"),
        ("ChangeInvisibleDuration", {**OTHER, "topic": {"name": "normal"}}, "Group:others"),
        ("QueryAssignment", {**READERS, "topic": {"name": "fifo"}}, "Topic:fifo"),
    ],
)  # fmt: skip
def test_rights(name: str, fields: dict[str, Any], wanted: str) -> None:
    """Each request asks for what Java's asks for; the answer is a status and nothing else."""
    text = f"User:alice has no permission to access {wanted} from 192.0.2.9, no matched policies."
    alice = Client(a_stage())
    assert alice.told(name, **fields) == (UNAUTHORIZED, text)
    found: list[Any] = []
    alice.begin(name, **fields).then(found.append)
    assert name != "ReceiveMessage" or len(found[0]) == 1


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("QueryRoute", {}, "topic is null."),
        ("SendMessage", {}, "message is null."),
        ("ReceiveMessage", {}, "messageQueue is null."),
        ("AckMessage", {}, "group is null."),
        ("Heartbeat", {"client_type": 2}, "group is null."),
    ],
)
def test_what_does_not_say_for_what(name: str, fields: dict[str, Any], message: str) -> None:
    """It is refused as well."""
    assert Client(a_stage()).told(name, **fields) == (UNAUTHORIZED, message)


def test_telemetry() -> None:
    """Settings name topics and groups; who may not have them is told so, and the stream ends."""
    stage = a_stage()

    def taken(settings: dict[str, Any]) -> tuple[int, str]:
        alice, heard = Client(stage), list[Any]()
        take = stage.proxy.telemetry(alice.caller, heard.append)
        try:
            take(MESSAGES["TelemetryCommand"](settings=settings))
        except StreamEndedError:
            assert not heard[0].HasField("settings")
        return heard[0].status.code, heard[0].status.message

    told = "User:alice has no permission to access {} from 192.0.2.9, no matched policies."
    topics = {"topics": [{"name": "normal"}, {"name": "fifo"}]}
    assert taken({"publishing": topics}) == (UNAUTHORIZED, told.format("Topic:fifo"))
    assert taken({"publishing": {"topics": topics["topics"][:1]}, "client_type": 1})[0] == 20000
    subscription = {**OTHER, "subscriptions": [{"topic": {"name": "normal"}}]}
    assert taken({"subscription": subscription}) == (UNAUTHORIZED, told.format("Group:others"))
    subscription = {**READERS, "subscriptions": [{"topic": {"name": "fifo"}}]}
    assert taken({"subscription": subscription}) == (UNAUTHORIZED, told.format("Topic:fifo"))
    text = "settings command doesn't have publishing or subscription."
    assert taken({}) == (50001, text)


def test_white_lists_name_messages() -> None:
    """By their whole names."""
    names = "apache.rocketmq.v2.QueryRouteRequest"
    stage = a_stage(authenticationWhitelist=names, authorizationWhitelist=names)
    nobody = Client(stage, authorization="")
    assert nobody.told("QueryRoute", **ROUTE)[0] == 20000
    assert nobody.told("Heartbeat", client_type=1)[0] == UNAUTHORIZED
