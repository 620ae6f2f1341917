"""Users and rules as administrators change and list them."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.auth.access_stage import ALICE, ROOT, Stage, rule
from tests.compat.rocketmq.broker_peer import Peer, a_broker

_C = RequestCode
#: Java forgets to take back what it says of an answer before it is one
DONE = "not set any response code"
NO_PERMISSION, INVALID_PARAMETER, SYSTEM_ERROR = 16, 29, 1


def listed(stage: Stage, code: RequestCode, **fields: object) -> Any:
    """Return what an answer's body says, None where it has none."""
    answer = stage.ask(ROOT, code, fields)
    assert (answer.code, answer.remark) == (0, DONE)
    return json.loads(answer.body) if answer.body else None


def test_users_are_made_and_listed() -> None:
    """Kind and state have defaults, and are known in any case; fields are in Java's order."""
    stage = Stage()
    stage.make_user(("bob", "b"), userType="SUPER", userStatus="Disable")
    stage.make_user(("eve", "e"), userType="strange")
    answer = stage.administrate(_C.AUTH_GET_USER, username="bob")
    assert answer.body == (
        b'{"password":"b","userStatus":"disable","userType":"Super","username":"bob"}'
    )
    users = listed(stage, _C.AUTH_LIST_USER)
    assert [user["username"] for user in users] == ["bob", "eve", "root"]
    assert listed(stage, _C.AUTH_LIST_USER, filter="o") == [users[0], users[2]]
    assert listed(stage, _C.AUTH_LIST_USER, filter="z") is None
    assert listed(stage, _C.AUTH_GET_USER, username="z") is None
    assert users[1] == {
        "username": "eve", "password": "e", "userType": "Normal", "userStatus": "enable",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("username", "content", "code", "remark"),
    [
        ("root", {"password": "x"}, NO_PERMISSION, "The user is existed"),
        ("bob", {"password": " "}, NO_PERMISSION, "password can not be blank"),
        ("bob", {}, NO_PERMISSION, "password can not be blank"),
        (" ", {"password": "x"}, NO_PERMISSION, "username can not be blank"),
        ("", {"password": "x"}, INVALID_PARAMETER, "The username is blank"),
        ("bob", [], SYSTEM_ERROR, "an object belongs where a list stands"),
    ],
)
def test_users_that_cannot_be(username: str, content: object, code: int, remark: str) -> None:
    """Nothing has changed."""
    stage = Stage()
    answer = stage.administrate(_C.AUTH_CREATE_USER, content, username=username)
    assert (answer.code, answer.remark) == (code, remark)
    assert list(stage.broker.access.table.users) == ["root"]


def test_users_change() -> None:
    """What a request does not say of a user stays."""
    stage = Stage()
    stage.make_user(ALICE)
    stage.administrate(_C.AUTH_UPDATE_USER, {"userStatus": "disable"}, username="alice")
    stage.administrate(_C.AUTH_UPDATE_USER, {"password": "new"}, username="alice")
    stage.administrate(_C.AUTH_UPDATE_USER, {"userType": "Super"}, username="alice")
    assert listed(stage, _C.AUTH_GET_USER, username="alice") == {
        "username": "alice", "password": "new", "userType": "Super", "userStatus": "disable",
    }  # fmt: skip
    answer = stage.administrate(_C.AUTH_UPDATE_USER, {"password": "x"}, username="bob")
    assert (answer.code, answer.remark) == (NO_PERMISSION, "The user is not exist")


def test_only_super_users_change_super_users() -> None:
    """A normal user with all rights to the cluster makes none, changes none, removes none."""
    stage = Stage()
    stage.make_user(ALICE)
    stage.allow(ALICE, rule("Cluster:*", "All"))

    def by_alice(code: RequestCode, content: object, name: str) -> tuple[int, str | None]:
        answer = stage.administrate(code, content, ALICE, username=name)
        return answer.code, answer.remark

    new = {"password": "x", "userType": "Super"}
    text = "The super user can only be {} by super user"
    assert by_alice(_C.AUTH_CREATE_USER, new, "bob") == (SYSTEM_ERROR, text.format("create"))
    assert by_alice(_C.AUTH_UPDATE_USER, new, "alice") == (SYSTEM_ERROR, text.format("update"))
    change = {"password": "x"}
    assert by_alice(_C.AUTH_UPDATE_USER, change, "root") == (NO_PERMISSION, text.format("update"))
    assert by_alice(_C.AUTH_DELETE_USER, None, "root") == (NO_PERMISSION, text.format("update"))
    assert by_alice(_C.AUTH_CREATE_USER, change, "bob") == (0, DONE)


def test_users_go_with_their_rules() -> None:
    """One who is not there is no error; one without a name is."""
    stage = Stage()
    stage.make_user(ALICE)
    stage.allow(ALICE, rule("Topic:t", "Pub"))
    for _ in range(2):
        answer = stage.administrate(_C.AUTH_DELETE_USER, username="alice")
        assert (answer.code, answer.remark) == (0, DONE)
    assert stage.broker.access.table.acls == {}
    answer = stage.administrate(_C.AUTH_DELETE_USER)
    assert (answer.code, answer.remark) == (NO_PERMISSION, "username can not be blank")


def test_rules_are_joined_and_taken_apart() -> None:
    """A rule replaces that of the same resource and type, and is removed by its resource."""
    stage = Stage()
    stage.make_user(ALICE)
    stage.allow(ALICE, rule("topic:a", "pub"), rule("Group:g*", "Sub", ips=["10.0.0.0/8"]))
    stage.allow(ALICE, rule("Topic:a", "Sub", "strange", "Get", decision="deny"))
    stage.allow(ALICE, rule("*", "All"), policy_type="default")
    assert listed(stage, _C.AUTH_GET_ACL, subject="user:alice") == {
        "subject": "User:alice",
        "policies": [
            {
                "policyType": "Custom",
                "entries": [
                    {"resource": "Topic:a", "actions": ["Sub", "Get"], "decision": "Deny"},
                    {
                        "resource": "Group:g*", "actions": ["Sub"], "decision": "Allow",
                        "sourceIps": ["10.0.0.0/8"],
                    },
                ],
            },
            {
                "policyType": "Default",
                "entries": [{"resource": "*", "actions": ["All"], "decision": "Allow"}],
            },
        ],
    }  # fmt: skip

    def without(**fields: object) -> list[str]:
        answer = stage.ask(ROOT, _C.AUTH_DELETE_ACL, {"subject": "User:alice", **fields})
        assert (answer.code, answer.remark) == (0, DONE)
        acl = stage.broker.access.table.acls.get("User:alice")
        policies = () if acl is None else acl.policies
        return [entry.resource for policy in policies for entry in policy.entries]

    assert without(resource="*") == ["Topic:a", "Group:g*", "*"]
    assert without(resource="*", policyType="Default") == ["Topic:a", "Group:g*"]
    assert without(resource="Topic:a") == ["Group:g*"]
    assert without(resource="Group:g*") == []
    answer = stage.administrate(_C.AUTH_DELETE_ACL, subject="User:alice")
    assert (answer.code, answer.remark) == (NO_PERMISSION, "The acl is not exist.")


def test_the_first_rules_of_a_subject_stand_as_they_come() -> None:
    """Several of a type and of a resource, as Java has them; changes look at the first of each."""
    stage = Stage()
    stage.make_user(ALICE)
    first, second = [
        {"policyType": kind, "entries": [rule("Topic:a", action), rule("Topic:a", "List")]}
        for kind, action in (("custom", "Pub"), (None, "Sub"))
    ]

    def found() -> list[list[list[str]]]:
        acl = listed(stage, _C.AUTH_GET_ACL, subject="User:alice")
        return [[one["actions"] for one in policy["entries"]] for policy in acl["policies"]]

    both = {"policies": [first, second]}
    stage.administrate(_C.AUTH_UPDATE_ACL, both, subject="User:alice")
    assert found() == [[["Pub"], ["List"]], [["Sub"], ["List"]]]
    stage.allow(ALICE, rule("Topic:a", "Get"))
    assert found() == [[["Get"], ["List"]], [["Sub"], ["List"]]]
    for left in ([[["List"]], [["Sub"], ["List"]]], [[["Sub"], ["List"]]]):
        stage.administrate(_C.AUTH_DELETE_ACL, subject="User:alice", resource="Topic:a")
        assert found() == left


@pytest.mark.parametrize(
    ("entry", "remark"),
    [
        (rule(None, "Pub"), "The resource is null."),
        (rule("Strange:t", "Pub"), "The resource is null."),
        (rule("Topic:t"), "The actions is empty."),
        (rule("Topic:t", "strange"), "The actions is empty."),
        (rule("Topic:t", "Any"), "The actions can not be Any."),
        (rule("Topic:t", "Pub", ips=[" "]), "The source ip is empty."),
        (rule("Topic:t", "Pub", ips=["300.1.1.1"]), "The source ip is invalid."),
        (rule("Topic:t", "Pub", decision="perhaps"), "The decision is null or illegal."),
    ],
)
def test_rules_that_cannot_be(entry: dict[str, object], remark: str) -> None:
    """They are refused in Java's words, and nothing of the request is kept."""
    stage = Stage()
    stage.make_user(ALICE)
    answer = stage.allow(ALICE, rule("Topic:good", "Pub"), entry)
    assert (answer.code, answer.remark) == (NO_PERMISSION, remark)
    assert stage.broker.access.table.acls == {}


def test_subjects_that_cannot_be() -> None:
    """Rules are of users who are there."""
    stage = Stage()
    answer = stage.allow(("bob", ""), rule("Topic:t", "Pub"))
    assert (answer.code, answer.remark) == (
        NO_PERMISSION,
        "The subject of User:bob is not exist.",
    )
    policies = {"policies": [{"entries": [rule("Topic:t", "Pub")]}]}
    answer = stage.administrate(_C.AUTH_UPDATE_ACL, policies, subject="Role:x")
    broken = "An system error occurred, please try again later."
    assert (answer.code, answer.remark) == (SYSTEM_ERROR, broken)
    answer = stage.administrate(_C.AUTH_UPDATE_ACL, {"policies": []}, subject="User:root")
    assert (answer.code, answer.remark) == (SYSTEM_ERROR, "The body of acl is null")
    empty = {"policies": [{"policyType": "Custom", "entries": list[object]()}]}
    answer = stage.administrate(_C.AUTH_UPDATE_ACL, empty, subject="User:root")
    assert (answer.code, answer.remark) == (NO_PERMISSION, "The policies is empty.")
    for code in (_C.AUTH_GET_ACL, _C.AUTH_DELETE_ACL):
        assert stage.administrate(code, subject="User:bob").remark == "The subject is not exist."
        assert stage.administrate(code, subject="User:").remark == "The subject is not exist."
        assert stage.administrate(code).remark == "The subject is null."


def test_rules_are_listed() -> None:
    """By texts in subject and resource; what is left without entries is not listed."""
    stage = Stage()
    bob = ("bob", "b")
    stage.make_user(bob)
    stage.make_user(ALICE)
    stage.allow(bob, rule("Topic:t", "Pub"))
    stage.allow(ALICE, rule("Topic:u", "Pub"), rule("Group:g", "Sub"))

    def subjects(**fields: object) -> list[str]:
        found: list[dict[str, str]] = listed(stage, _C.AUTH_LIST_ACL, **fields) or []
        return [acl["subject"] for acl in found]

    assert subjects() == ["User:alice", "User:bob"]
    assert subjects(subjectFilter="bo") == ["User:bob"]
    assert subjects(resourceFilter="Topic") == ["User:alice", "User:bob"]
    assert subjects(resourceFilter="Group:") == ["User:alice"]
    assert subjects(subjectFilter="bob", resourceFilter="Group") == []


def test_a_broker_that_keeps_no_users_says_so() -> None:
    """Without providers, as by default, there is nothing to change or list."""
    peer = Peer(a_broker())
    broken = (SYSTEM_ERROR, "An system error occurred, please try again later.")
    body = b'{"password":"x"}'
    for code in range(_C.AUTH_CREATE_USER, _C.AUTH_LIST_USER + 1):
        answer = peer.ask(code, {"username": "bob"}, body)
        assert (answer.code, answer.remark) == broken
    rules = json.dumps({"policies": [{"entries": [rule("Topic:t", "Pub")]}]}).encode()
    for code in range(_C.AUTH_CREATE_ACL, _C.AUTH_LIST_ACL + 1):
        answer = peer.ask(code, {"subject": "User:bob"}, rules)
        assert (answer.code, answer.remark) == broken


def test_what_cannot_be_written_has_not_changed() -> None:
    """An administrator who is told of an error finds what was before."""
    host = SimulatedHost(clock=ManualClock())
    stage = Stage(host)
    stage.make_user(ALICE)
    host.fs.faults.fail_next("sync", errno.EIO, path="*/auth.json*")
    answer = stage.administrate(_C.AUTH_DELETE_USER, username="alice")
    assert answer.code == SYSTEM_ERROR
    assert list(stage.broker.access.table.users) == ["root", "alice"]
    assert stage.told(ALICE, 28)[0] == 0
    assert stage.told(ROOT, 28)[0] == 0
