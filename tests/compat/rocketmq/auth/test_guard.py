"""The guard: who does not sign, or may not have it, is told so; everybody else is served."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.auth.guard import GuardedHandler
from logstore.compat.rocketmq.registry import HANDLERS
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.auth.access_stage import ALICE, ROOT, Stage, rule, signed
from tests.compat.rocketmq.broker_peer import ONEWAY, Peer, a_broker, sent_fields

GET_MAX_OFFSET, SEND = RequestCode.GET_MAX_OFFSET, RequestCode.SEND_MESSAGE_V2
NO_PERMISSION = 16


def test_a_broker_without_users_has_no_guard() -> None:
    """Its handlers are those of all brokers, and nothing of access control has been made."""
    broker = a_broker()
    assert broker.handlers is HANDLERS
    assert broker.send_run is not None
    assert broker.guarding is None
    assert "access" not in vars(broker)
    assert not broker.host.fs.exists("/store/config/auth.json")


def test_a_signature_is_looked_at() -> None:
    """Only fields and body that were signed with the user's password are served."""
    stage = Stage(authorizationEnabled="false")
    asked = {"topic": "orders", "queueId": 0}
    good = signed(ROOT, asked)
    assert stage.peer.ask(GET_MAX_OFFSET, good).code == 0
    for changed in ({"queueId": "1"}, {"more": "x"}, {"Signature": ""}, {"Signature": "\u00e4"}):
        answer = stage.peer.ask(GET_MAX_OFFSET, {**good, **changed})
        assert (answer.code, answer.remark) == (NO_PERMISSION, "check signature failed.")
    assert answer.fields is None
    named = {**asked, "AccessKey": "root"}
    assert stage.peer.ask(GET_MAX_OFFSET, named).remark == "check signature failed."


def test_the_body_is_signed_too() -> None:
    """A send whose body was changed on the way is refused; the right one is stored."""
    stage = Stage()
    fields = signed(ROOT, sent_fields("orders", 0), b"three apples")
    assert stage.peer.ask(SEND, fields, b"four apples").remark == "check signature failed."
    assert stage.peer.ask(SEND, fields, b"three apples").code == 0
    assert stage.broker.store.max_queue_offset("orders", 0) == 1


@pytest.mark.parametrize("serializer", [0, 1])
def test_either_header_is_signed(serializer: int) -> None:
    """The binary header has the same fields."""
    stage = Stage(authorizationEnabled="false")
    fields = signed(ROOT, {"topic": "orders", "queueId": 0})
    assert stage.peer.ask(GET_MAX_OFFSET, fields, serializer=serializer).code == 0


def test_old_clients_sign_before_they_mark_a_query() -> None:
    """Up to 4.9.3 one field of theirs is no part of what they sign."""
    stage = Stage(authorizationEnabled="false")
    fields = {**signed(ROOT, {"topic": "orders", "queueId": 0}), "_UNIQUE_KEY_QUERY": "true"}
    assert Peer(stage.broker, 40002, version=399).ask(GET_MAX_OFFSET, fields).code == 0
    assert Peer(stage.broker, 40003, version=400).ask(GET_MAX_OFFSET, fields).code == NO_PERMISSION


def test_nobody_is_told_anything() -> None:
    """Without a name, with an unknown or a disabled one, not even what is not served."""
    stage = Stage()
    stage.make_user(ALICE, userStatus="disable")
    told = stage.told
    assert told(None, GET_MAX_OFFSET, topic="t") == (NO_PERMISSION, "username cannot be null.")
    assert told(None, 9999) == (NO_PERMISSION, "username cannot be null.")
    assert told(("bob", "x"), 9999) == (NO_PERMISSION, "User:bob is not found.")
    assert told(ALICE, 9999) == (NO_PERMISSION, "User:alice is disabled.")
    assert told(ROOT, 9999) == (3, " request type 9999 not supported")
    assert told(ROOT, RequestCode.TRIGGER_DELETE_FILES)[0] == 3


def test_nobody_hears_of_a_request_that_wants_no_answer() -> None:
    """One that is refused is just not served."""
    stage = Stage()
    stage.peer.send(SEND, sent_fields("orders", 0), b"x", flag=ONEWAY)
    assert stage.peer.heard == []
    assert stage.broker.store.max_queue_offset("orders", 0) == 0


def test_white_lists() -> None:
    """Codes on them are served to everybody; their requests still need the rights."""
    stage = Stage(authenticationWhitelist="28, 30,")
    assert stage.told(None, RequestCode.GET_BROKER_RUNTIME_INFO)[0] == 0
    assert stage.told(None, GET_MAX_OFFSET, topic="t", queueId=0) == (
        NO_PERMISSION,
        "Authorization failed. Please verify your access rights and try again.",
    )
    stage = Stage(authenticationWhitelist="30", authorizationWhitelist="30")
    assert stage.told(None, GET_MAX_OFFSET, topic="t", queueId=0)[0] == 0


def test_rights_without_signatures() -> None:
    """With authorization alone, a name is believed; requests without fields ask for nothing."""
    stage = Stage(authenticationEnabled="false")
    stage.make_user(ALICE)
    stage.allow(ALICE, rule("Topic:t", "Get"))
    names = {"AccessKey": "alice"}
    assert stage.told(None, GET_MAX_OFFSET, topic="t", queueId=0, **names)[0] == 0
    assert stage.told(None, GET_MAX_OFFSET, topic="u", queueId=0, **names) == (
        NO_PERMISSION,
        "User:alice has no permission to access Topic:u from 127.0.0.1, no matched policies.",
    )
    stranger = {"AccessKey": "bob"}
    assert stage.told(None, GET_MAX_OFFSET, topic="t", **stranger)[1] == "User:bob not found."
    assert stage.told(None, RequestCode.GET_BROKER_CONFIG)[0] == 0


def test_rights_decide() -> None:
    """What a rule allows is served, what one denies or none names is not; super users may all."""
    stage = Stage()
    stage.make_user(ALICE)
    assert stage.told(ALICE, GET_MAX_OFFSET, topic="t", queueId=0)[0] == NO_PERMISSION
    stage.allow(ALICE, rule("Topic:t*", "Get"), rule("Topic:tin", "All", decision="Deny"))
    assert stage.told(ALICE, GET_MAX_OFFSET, topic="t", queueId=0)[0] == 0
    assert stage.told(ALICE, GET_MAX_OFFSET, topic="tin", queueId=0) == (
        NO_PERMISSION,
        "User:alice has no permission to access Topic:tin from 127.0.0.1, the decision is deny.",
    )
    assert stage.told(ROOT, GET_MAX_OFFSET, topic="tin", queueId=0)[0] == 0


def test_without_providers() -> None:
    """Who switches it on and names no place for users serves nobody, and says why."""
    stage = Stage(authenticationMetadataProvider="", initAuthenticationUser="")
    missing = "The authenticationMetadataProvider is not configured"
    assert stage.told(ROOT, GET_MAX_OFFSET, topic="t") == (NO_PERMISSION, missing)
    stage = Stage(
        authenticationMetadataProvider="", initAuthenticationUser="", authenticationEnabled="false"
    )
    assert stage.told(ROOT, GET_MAX_OFFSET, topic="t") == (NO_PERMISSION, missing)
    stage = Stage(authorizationMetadataProvider="")
    stage.make_user(ALICE)
    missing = "The authorizationMetadataProvider is not configured"
    assert stage.told(ALICE, GET_MAX_OFFSET, topic="t") == (NO_PERMISSION, missing)


def test_what_was_decided_for_a_connection_may_hold() -> None:
    """With the stateful strategies a judgement is renewed only when its time is over."""
    auth = "org.apache.rocketmq.auth"
    clock = ManualClock()
    stage = Stage(
        SimulatedHost(clock=clock),
        authenticationStrategy=f"{auth}.authentication.strategy.StatefulAuthenticationStrategy",
        authorizationStrategy=f"{auth}.authorization.strategy.StatefulAuthorizationStrategy",
        statefulAuthorizationCacheExpiredSecond="200",
        statefulAuthenticationCacheMaxNum="2",
    )
    stage.make_user(ALICE)
    stage.allow(ALICE, rule("Topic:t", "Get"))
    wrong = ("alice", "wrong")
    asked = {"topic": "t", "queueId": 0}
    assert stage.told(ALICE, GET_MAX_OFFSET, **asked)[0] == 0
    assert stage.told(wrong, GET_MAX_OFFSET, **asked)[0] == 0
    other = Peer(stage.broker, 40009)
    assert other.ask(GET_MAX_OFFSET, signed(wrong, asked)).remark == "check signature failed."
    assert other.ask(GET_MAX_OFFSET, signed(ALICE, asked)).remark == "check signature failed."
    clock.advance(60_000)
    assert stage.told(wrong, GET_MAX_OFFSET, **asked)[1] == "check signature failed."
    clock.advance(139_999)
    stage.administrate(RequestCode.AUTH_DELETE_ACL, subject="User:alice")
    assert stage.told(ALICE, GET_MAX_OFFSET, **asked)[0] == 0
    clock.advance(1)
    assert stage.told(ALICE, GET_MAX_OFFSET, **asked)[0] == NO_PERMISSION


def test_of_too_many_judgements_the_oldest_is_forgotten() -> None:
    """A cache of one entry forgets a user as soon as another comes."""
    auth = "org.apache.rocketmq.auth.authentication.strategy"
    stage = Stage(
        authenticationStrategy=f"{auth}.StatefulAuthenticationStrategy",
        statefulAuthenticationCacheMaxNum="1",
        authorizationEnabled="false",
    )
    stage.make_user(ALICE)
    assert stage.told(("root", "wrong"), 28)[0] == 0
    assert stage.told(ALICE, 28)[0] == 0
    assert stage.told(("root", "wrong"), 28)[0] == NO_PERMISSION


def test_users_and_rules_outlast_a_crash() -> None:
    """They are on the disk before the administrator is told so."""
    host = SimulatedHost(clock=ManualClock())
    stage = Stage(host)
    stage.make_user(ALICE)
    stage.allow(ALICE, rule("Topic:t", "Get"))
    stage.broker.abandon()
    stage = Stage(host)
    assert stage.told(ALICE, GET_MAX_OFFSET, topic="t", queueId=0)[0] == 0
    assert stage.told(ALICE, GET_MAX_OFFSET, topic="u", queueId=0)[0] == NO_PERMISSION


def test_every_handler_behind_the_guard_can_be_loaded() -> None:
    """Each has the kind of handler that its code has, and one more answers all other codes."""
    handlers = Stage().broker.handlers
    assert handlers.keys() - HANDLERS.keys() == {-1}
    for code, handler in handlers.items():
        assert isinstance(handler, GuardedHandler)
        handler.load()
        inner = HANDLERS.get(code)
        if inner is not None:
            assert (handler.handle is None) == (inner.handle is None)
            assert (handler.handle_raw is None) == (inner.handle_raw is None)
        else:
            assert handler.handle is not None
