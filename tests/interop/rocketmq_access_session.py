"""Raw requests of many users at one broker with access control, and what it answers to each."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any

from logstore.tools.dev.remoting_request import Answer, ask

AUTH = "org.apache.rocketmq.auth"
#: where users and rules stand: in the broker
PROVIDERS: dict[str, object] = {
    "authenticationMetadataProvider": f"{AUTH}.authentication.provider."
    "LocalAuthenticationMetadataProvider",
    "authorizationMetadataProvider": f"{AUTH}.authorization.provider."
    "LocalAuthorizationMetadataProvider",
}
ROOT = ("root", "root-pw")
#: everybody signs and has rights; requests by which a test knows that a broker is up go unsigned
ACCESS: dict[str, object] = {
    **PROVIDERS,
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"root","password":"root-pw"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"inner-pw"}',
    "authenticationWhitelist": "25, 28",
}
SYSTEM_ERROR, PULL_NOT_FOUND = 1, 19
CREATE_USER, UPDATE_USER, DELETE_USER, GET_USER, LIST_USER = range(3001, 3006)
CREATE_ACL, UPDATE_ACL, DELETE_ACL, GET_ACL, LIST_ACL = range(3006, 3011)
_SHOWN_BYTES_MAX = 4000
#: how those errors of Java's begin that name neither classes nor lines
_SAID = ("The super user", "An system error")
User = tuple[str, str]
Fields = Mapping[str, object]


def signed(user: User, fields: Fields, body: bytes) -> dict[str, str]:
    """Return the fields as a client's hook sends them."""
    named = {name: str(value) for name, value in fields.items()} | {"AccessKey": user[0]}
    content = "".join(named[name] for name in sorted(named)).encode() + body
    digest = hmac.new(user[1].encode(), content, hashlib.sha1).digest()
    return {**named, "Signature": base64.b64encode(digest).decode()}


class AccessSession:
    """Asks one broker, and writes down what it says."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self.lines: list[str] = []

    def ask(
        self,
        user: User | None,
        code: int,
        fields: Fields | None = None,
        body: bytes = b"",
        *,
        note: str = "",
        shows_body: bool = False,
    ) -> Answer:
        """Send one request in the name of a user, or of nobody."""
        sent = dict(fields or {}) if user is None else signed(user, fields or {}, body)
        answer = ask(self._address, code, sent, body, timeout_seconds=20, version=513)
        who = "nobody" if user is None else user[0]
        told = answer.remark or ""
        if answer.code in (SYSTEM_ERROR, PULL_NOT_FOUND) and not told.startswith(_SAID):
            told = "..."  # Java's names and lines; what it has made of a queue that is empty
        shown = answer.body[:_SHOWN_BYTES_MAX].decode(errors="replace") if shows_body else ""
        self.lines.append(f"{note or code} by {who}: {answer.code} {told!r} {shown}")
        return answer

    def administrate(
        self, code: int, body: object = None, by: User = ROOT, **fields: object
    ) -> None:
        """Ask for users or rules, or change them."""
        data = b"" if body is None else json.dumps(body).encode()
        self.ask(by, code, fields, data, shows_body=True)

    def forged(self, fields: Fields, note: str) -> None:
        """Ask for the largest offset of a queue with these fields as they are."""
        named = {"topic": "t-all", "queueId": "0", **fields}
        answer = ask(self._address, 30, named, timeout_seconds=20, version=513)
        self.lines.append(f"{note}: {answer.code} {answer.remark!r}")

    def proxy_users(self) -> None:
        """Make a topic, and who may write to it or read it."""
        for name in ("orders", "secrets"):
            self.ask(ROOT, 17, topic_fields(name))
        for name, entries in (
            ("writer", [rule("Topic:orders", ["Pub"])]),
            ("reader", [rule("Topic:orders", ["Sub"]), rule("Group:readers", ["Sub"])]),
        ):
            self.administrate(CREATE_USER, {"password": "pw"}, username=name)
            self.administrate(CREATE_ACL, acl(*entries), subject=f"User:{name}")


def rule(
    resource: object, actions: object, decision: str = "Allow", ips: object = None
) -> dict[str, object]:
    """Return an entry of a policy, as administrators send it."""
    return {"resource": resource, "actions": actions, "decision": decision, "sourceIps": ips}


def acl(*entries: object, policy_type: str | None = "Custom") -> dict[str, object]:
    """Return the body of a request that sets rules."""
    return {"policies": [{"policyType": policy_type, "entries": list(entries)}]}


def make_users(session: AccessSession) -> None:
    """Users of every kind, and those that cannot be."""
    for name, body in (
        ("alice", {"password": "alice-pw"}),
        ("bob", {"password": "bob-pw", "userType": "normal"}),
        ("carol", {"password": "carol-pw", "userStatus": "DISABLE"}),
        ("dave", {"password": "dave-pw", "userType": "Super", "userStatus": "enable"}),
        ("erin", {"password": "erin-pw", "userType": "strange", "userStatus": "odd"}),
        ("alice", {"password": "again"}),
        ("frank", {"password": "  "}),
        ("frank", {}),
        ("", {"password": "x"}),
        ("  ", {"password": "x"}),
    ):
        session.administrate(CREATE_USER, body, username=name)
    session.administrate(CREATE_USER, {"password": "x"})
    session.administrate(CREATE_USER, {"password": "x"}, ("alice", "alice-pw"), username="gina")
    session.administrate(LIST_USER)
    session.administrate(LIST_USER, filter="a")
    session.administrate(LIST_USER, filter="nobody")
    for name in ("alice", "inner", "nobody", " ", ""):
        session.administrate(GET_USER, username=name)
    session.administrate(GET_USER)
    session.administrate(UPDATE_USER, {"userStatus": "disable"}, username="erin")
    session.administrate(UPDATE_USER, {"password": "bob-2"}, username="bob")
    session.administrate(UPDATE_USER, {"password": "x"}, username="nobody")
    session.administrate(UPDATE_USER, {"password": "x"})
    session.administrate(GET_USER, username="bob")
    session.administrate(GET_USER, username="erin")


def make_rules(session: AccessSession) -> None:
    """Rules of every form."""
    good = acl(
        rule("Topic:t-all", ["All"]),
        rule("Topic:t-pub", ["pub"]),
        rule("topic:t-sub", ["Sub", "Get"], ips=["127.0.0.1"]),
        rule("Topic:far", ["All"], ips=["10.1.2.3", "192.168.0.0/16"]),
        rule("Topic:near", ["All"], ips=["10.0.0.0/8", "127.0.0.0/8"]),
        rule("Topic:pre*", ["Pub", "Sub"]),
        rule("Topic:prefix*", ["Pub"], "Deny"),
        rule("Topic:prefix-ok", ["Pub"]),
        rule("Group:g*", ["Sub"]),
        rule("Group:g-denied", ["All"], "deny"),
    )
    session.administrate(CREATE_ACL, good, subject="User:alice")
    session.administrate(GET_ACL, subject="User:alice")
    session.administrate(
        UPDATE_ACL, acl(rule("Topic:t-pub", ["Pub", "Create"])), subject="user:alice"
    )
    session.administrate(
        UPDATE_ACL, acl(rule("*", ["Get"]), policy_type="Default"), subject="User:alice"
    )
    session.administrate(CREATE_ACL, acl(rule("Cluster:*", ["All"])), subject="User:bob")
    session.administrate(CREATE_ACL, acl(rule("Topic:*", ["Sub"]), policy_type=None),
                         subject="User:bob")  # fmt: skip
    session.administrate(CREATE_ACL, {"subject": "User:bob", **acl(rule("Group:b", ["Sub"]))},
                         subject="User:alice")  # fmt: skip
    make_wrong_rules(session)
    for subject in ("User:alice", "User:bob", "User:carol", "User:nobody", "Role:x", ""):
        session.administrate(GET_ACL, subject=subject)
    session.administrate(LIST_ACL)
    session.administrate(LIST_ACL, subjectFilter="bob")
    session.administrate(LIST_ACL, resourceFilter="Group")
    session.administrate(LIST_ACL, resourceFilter="nothing")


def make_wrong_rules(session: AccessSession) -> None:
    """Rules that cannot be."""
    for wrong in (
        rule(None, ["Pub"]),
        rule("Strange:t", ["Pub"]),
        rule("Topic:t", []),
        rule("Topic:t", ["strange"]),
        rule("Topic:t", ["Any"]),
        rule("Topic:t", ["Pub"], ips=[" "]),
        rule("Topic:t", ["Pub"], ips=["300.1.1.1"]),
        rule("Topic:t", ["Pub"], ips=["10.0.0.0/40"]),
        rule("Topic:t", ["Pub"], "perhaps"),
        rule("Topic:t", None),
    ):
        session.administrate(CREATE_ACL, acl(wrong), subject="User:alice")
    session.administrate(CREATE_ACL, {"policies": []}, subject="User:alice")
    session.administrate(CREATE_ACL, acl(), subject="User:alice")
    session.administrate(CREATE_ACL, acl(rule("Topic:t", ["Pub"])), subject="User:nobody")
    session.administrate(CREATE_ACL, acl(rule("Topic:t", ["Pub"])), subject="Role:alice")
    session.administrate(CREATE_ACL, acl(rule("Topic:t", ["Pub"])))


def forge(session: AccessSession) -> None:
    """Signatures that are none, and users who are nobody."""
    session.ask(None, 30, {"topic": "t-all", "queueId": 0}, note="unsigned")
    session.ask(None, 30, note="without a field")
    session.ask(("alice", "wrong"), 30, {"topic": "t-all", "queueId": 0}, note="wrong password")
    session.ask(("nobody", "x"), 30, {"topic": "t-all", "queueId": 0}, note="unknown")
    session.ask(("carol", "carol-pw"), 30, {"topic": "t-all", "queueId": 0}, note="disabled")
    good = signed(("alice", "alice-pw"), {"topic": "t-all", "queueId": 0}, b"")
    session.forged(good, "signed")
    session.forged({**good, "queueId": "1"}, "changed")
    session.forged({**good, "more": "x"}, "with a field more")
    session.forged({"AccessKey": "alice"}, "without a signature")
    session.forged({"AccessKey": "alice", "Signature": ""}, "with an empty one")
    session.forged({"AccessKey": "", "Signature": "x"}, "with an empty name")
    session.forged({"AccessKey": "alice", "Signature": "ü"}, "with strange letters")
    session.ask(None, 3999, note="a code that nobody knows")
    session.ask(ROOT, 3999, {"a": "b"}, note="a code that nobody knows")
    session.ask(None, 209, note="a code that is not served")
    session.ask(ROOT, 209, {"a": "b"}, note="a code that is not served")


def heart_beat(group: str, *topics: str) -> bytes:
    """Return the body of a consumer's heart beat."""
    subscriptions = [
        {"topic": topic, "subString": "*", "subVersion": 1, "tagsSet": [], "codeSet": [],
         "expressionType": "TAG", "classFilterMode": False}
        for topic in topics
    ]  # fmt: skip
    consumer = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": False,
        "subscriptionDataSet": subscriptions,
    }  # fmt: skip
    beat = {"clientID": "c@1", "producerDataSet": [{"groupName": "p"}],
            "consumerDataSet": [consumer]}  # fmt: skip
    return json.dumps(beat).encode()


def locked(group: str, topic: str) -> bytes:
    """Return the body of a request to lock a queue."""
    queue = {"brokerName": "broker-a", "queueId": 0, "topic": topic}
    return json.dumps({"consumerGroup": group, "clientId": "c@1", "mqSet": [queue]}).encode()


def topic_fields(topic: str, **more: object) -> dict[str, object]:
    """Return the header of a request to make a topic."""
    return {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1,
            "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
            **more}  # fmt: skip


def send_fields(topic: str) -> dict[str, object]:
    """Return the header of SEND_MESSAGE_V2."""
    return {"a": "p", "b": topic, "c": "TBW102", "d": 1, "e": 0, "f": 0, "g": 1_700_000_000_000,
            "h": 0, "i": "", "j": 0, "k": "false", "m": "false"}  # fmt: skip


def send_words(topic: str) -> dict[str, object]:
    """Return the header of SEND_MESSAGE."""
    return {"producerGroup": "p", "topic": topic, "defaultTopic": "TBW102",
            "defaultTopicQueueNums": 1, "queueId": 0, "sysFlag": 0, "flag": 0,
            "bornTimestamp": 1_700_000_000_000, "properties": "", "reconsumeTimes": 0,
            "unitMode": "false", "batch": "false"}  # fmt: skip


def pull(topic: str, group: str) -> dict[str, object]:
    """Return the header of a pull that does not wait."""
    return {"consumerGroup": group, "topic": topic, "queueId": 0, "queueOffset": 0,
            "maxMsgNums": 1, "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0,
            "subscription": "*", "subVersion": 0, "expressionType": "TAG"}  # fmt: skip


def requests_of_clients() -> Iterator[tuple[int, dict[str, Any], bytes]]:
    """What alice asks for: of each kind things that she has rights to, and others."""
    for topic in ("t-pub", "t-sub", "other", "far", "near", "pre-1", "prefix-1", "prefix-ok",
                  "%RETRY%g-1", "%RETRY%other", "%RETRY%g-denied"):  # fmt: skip
        yield 310, send_fields(topic), b"x"
        yield 10, send_words(topic), b"x"
        yield 105, {"topic": topic}, b""
        yield 11, pull(topic, "g-1"), b""
        yield 14, {"consumerGroup": "g-1", "topic": topic, "queueId": 0}, b""
        yield 15, {"consumerGroup": "g-1", "topic": topic, "queueId": 0, "commitOffset": 0}, b""
        yield 30, {"topic": topic, "queueId": 0}, b""
        yield 202, {"topic": topic}, b""
        yield 34, {"x": "y"}, heart_beat("g-1", topic)
        yield 41, {"x": "y"}, locked("g-1", topic)
        yield 42, {"x": "y"}, locked("g-1", topic)
    for group in ("g-1", "g-denied", "other"):
        yield 11, pull("t-sub", group), b""
        yield 34, {"x": "y"}, heart_beat(group, "t-sub")
        yield 35, {"clientID": "c@1", "producerGroup": "p", "consumerGroup": group}, b""
        yield 38, {"consumerGroup": group}, b""
        yield 41, {"x": "y"}, locked(group, "t-sub")
        yield 203, {"consumerGroup": group}, b""
        yield 208, {"consumerGroup": group, "topic": "t-sub;other"}, b""
        yield 208, {"consumerGroup": group, "topicList": "t-sub;;other"}, b""
        yield 207, {"groupName": group}, b""
        yield 36, {"offset": 0, "group": group, "delayLevel": 0, "originTopic": "t-sub"}, b""


def requests_of_administrators() -> Iterator[tuple[int, dict[str, Any], bytes]]:
    """What only rights to make, change or look at things give."""
    for topic in ("t-all", "t-pub", "t-sub", "other"):
        yield 17, topic_fields(topic), b""
        yield 17, topic_fields(topic, topicFilterType="STRANGE"), b""
        yield 351, {"topic": topic}, b""
        yield 300, {"topic": topic}, b""
        yield 215, {"topic": f"{topic}-gone"}, b""
    yield 34, {"x": "y"}, b"no json"
    yield 37, {"producerGroup": "p", "tranStateTableOffset": 0, "commitLogOffset": 0,
               "commitOrRollback": 0, "msgId": "x", "topic": "other"}, b""  # fmt: skip
    yield 26, {"x": "y"}, b""
    yield 204, {"producerGroup": "p", "topic": "other"}, b""
    yield 328, {"x": "y"}, b""
    yield 3005, {"x": "y"}, b""
    yield 343, {"group": "g-1"}, b""
    yield 343, {"group": "%RETRY%g-1"}, b""
    yield 901, {"clusterName": "DefaultCluster", "brokerName": "broker-a"}, b""
    yield 101, {"namespace": "n", "key": "k"}, b""
    yield 200052, {"consumerGroup": "g-1", "topic": "other", "queueId": 0, "maxMsgNums": 1}, b""
    yield 200050, {"consumerGroup": "other", "topic": "t-sub", "queueId": 0, "maxMsgNums": 1,
                   "invisibleTime": 1000, "pollTime": 0, "bornTime": 0,
                   "initMode": 0}, b""  # fmt: skip


def use_rights(session: AccessSession) -> None:
    """Everything that alice and bob ask for, and what becomes of it."""
    alice, bob = ("alice", "alice-pw"), ("bob", "bob-2")
    for topic in ("t-all", "t-pub", "t-sub", "other", "far", "near", "pre-1", "prefix-1",
                  "prefix-ok"):  # fmt: skip
        session.ask(ROOT, 17, topic_fields(topic))
    for code, fields, body in requests_of_clients():
        named = fields.get("topic") or fields.get("b") or ""
        session.ask(alice, code, fields, body, note=f"{code} {named} {body.decode()[-90:]}")
    for code, fields, body in requests_of_administrators():
        named = f"{fields.get('topic', '')} {fields.get('topicFilterType', '')}"
        session.ask(alice, code, fields, body, note=f"{code} {named}")
        session.ask(bob, code, fields, body, note=f"{code} {named}")


def take_rights(session: AccessSession) -> None:
    """Rules and users that go, one after the other."""
    alice, dave = ("alice", "alice-pw"), ("dave", "dave-pw")
    asked = {"topic": "t-all", "queueId": 0}
    session.administrate(DELETE_ACL, subject="User:alice", resource="Topic:t-sub")
    session.administrate(DELETE_ACL, subject="User:alice", resource="*")
    session.administrate(DELETE_ACL, subject="User:alice", resource="*", policyType="Default")
    session.administrate(DELETE_ACL, subject="User:alice", resource="Topic:unknown")
    session.administrate(GET_ACL, subject="User:alice")
    session.ask(alice, 30, asked)
    session.administrate(DELETE_ACL, subject="User:alice")
    session.administrate(DELETE_ACL, subject="User:alice")
    session.administrate(DELETE_ACL, subject="User:nobody")
    session.administrate(DELETE_ACL, subject="Role:nobody")
    session.administrate(DELETE_ACL)
    session.ask(alice, 30, asked)
    cluster = acl(rule("Cluster:DefaultCluster", ["Update", "Get"]))
    session.administrate(CREATE_ACL, cluster, subject="User:alice")
    session.administrate(CREATE_USER, {"password": "x", "userType": "Super"}, alice, username="m")
    session.administrate(CREATE_USER, {"password": "x"}, alice, username="n")
    session.administrate(UPDATE_USER, {"userType": "Super"}, alice, username="alice")
    session.administrate(UPDATE_USER, {"password": "x"}, alice, username="dave")
    session.administrate(DELETE_USER, None, alice, username="dave")
    session.administrate(UPDATE_USER, {"userType": "Normal"}, dave, username="dave")
    session.ask(dave, 30, asked)
    for name in ("alice", "alice", "nobody", ""):
        session.administrate(DELETE_USER, username=name)
    session.administrate(DELETE_USER)
    session.ask(alice, 30, asked)
    session.administrate(LIST_USER)
    session.administrate(LIST_ACL)


def whole_session(address: str) -> list[str]:
    """Return what is answered to everything, one line a request."""
    session = AccessSession(address)
    for part in (make_users, make_rules, forge, use_rights, take_rights):
        session.lines.append(f"== {part.__name__}")
        part(session)
    return session.lines
