"""Delegation tokens: made, told, renewed and ended, by whom they may be; and coming in by one."""

from __future__ import annotations

import base64
import struct
from typing import Any, TypeVar

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.delegation_tokens.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribedToken,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenExpiryResponse,
    TokenPrincipal,
)
from logstore.compat.kafka.registry import APIS
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.authorizer import CLASS_NAME
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.segments.kafka.internal_topics.schema import Message
from tests.compat.kafka.conversation import DIRECTORY
from tests.compat.kafka.security.access import creation
from tests.compat.kafka.security.secured import SETTINGS, SaslPeer, Secured
from tests.interop.sasl_wire import ScramClient

MessageT = TypeVar("MessageT", bound=Message)
KEY = {"delegation.token.secret.key": "the secret of the cluster"}
RULED = KEY | {
    "authorizer.class.name": CLASS_NAME,
    "super.users": "User:admin",
}
ALICE, BOB = b"\0alice\0secret", b"\0bob\0hidden"
DAY_MS = 86_400_000


class Holder:
    """Somebody who asks about tokens."""

    def __init__(self, peer: SaslPeer) -> None:
        self.peer = peer

    @classmethod
    def by_password(cls, secured: Secured, token: bytes = ALICE) -> Holder:
        """Come in by a password."""
        return cls(secured.peer().log_in(token))

    def ask(self, key: int, request: Message, kind: type[MessageT], version: int) -> MessageT:
        """Ask with a message of our own."""
        is_flexible = APIS[key].is_flexible(version)
        header = struct.pack(">hhih", key, version, 9, 1) + b"c" + bytes(is_flexible)
        frame = self.peer.raw(header + encode_message(request, version))
        return decode_message(kind, frame, version, 8 + is_flexible)

    def create(
        self, *renewers: str, owner: str | None = None, lifetime_ms: int = -1, version: int = 3
    ) -> CreateDelegationTokenResponse:
        """Ask for a token."""
        request = CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else "User",
            owner_principal_name=owner,
            renewers=tuple(map(somebody, renewers)),
            max_lifetime_ms=lifetime_ms,
        )
        return self.ask(38, request, CreateDelegationTokenResponse, version)

    def renew(self, secret: bytes, period_ms: int = -1, version: int = 2) -> tuple[int, int]:
        """Renew a token; return the code and when it ends."""
        request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)
        found = self.ask(39, request, TokenExpiryResponse, version)
        return found.error_code, found.expiry_timestamp_ms

    def expire(self, secret: bytes, period_ms: int = -1, version: int = 2) -> tuple[int, int]:
        """Let a token end; return the code and when."""
        request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
        found = self.ask(40, request, TokenExpiryResponse, version)
        return found.error_code, found.expiry_timestamp_ms

    def describe(
        self, *owners: str, is_all: bool = False, version: int = 3
    ) -> DescribeDelegationTokenResponse:
        """Ask which tokens there are."""
        wanted = None if is_all else tuple(map(somebody, owners))
        request = DescribeDelegationTokenRequest(owners=wanted)
        return self.ask(41, request, DescribeDelegationTokenResponse, version)

    def sees(self) -> list[str]:
        """Return the ids of the tokens that it may see."""
        return [one.token_id for one in self.describe(is_all=True).tokens]


def somebody(name: str) -> TokenPrincipal:
    """Return a user; another kind where one stands in front."""
    kind, colon, rest = name.partition(":")
    return TokenPrincipal(
        principal_type=kind if colon else "User", principal_name=rest if colon else name
    )


def log_in(secured: Secured, token_id: str, secret: bytes, extension: str = "tokenauth=true") -> (
    SaslPeer | None
):  # fmt: skip
    """Come in by a token; None if that fails."""
    peer = secured.peer()
    peer.handshake("SCRAM-SHA-256")
    client = ScramClient(token_id, base64.b64encode(secret).decode())
    client.bare += f",{extension}"
    asked = peer.send_token(client.first).answers()
    if not asked:  # a refusal comes after a pause
        return None
    answer = peer.send_token(client.final(asked[0].message["auth_bytes"])).answers()
    return peer if answer and client.is_proved(answer[0].message["auth_bytes"]) else None


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_is_made_and_told(version: int) -> None:
    """It is the client's, lasts a day, may be renewed for a week, and its secret is told again."""
    secured = Secured(KEY)
    alice = Holder.by_password(secured)
    made = alice.create("bob", version=version)
    now_ms = secured.host.clock.wall_ms()
    assert (made.error_code, made.principal_name, len(made.hmac)) == (0, "alice", 64)
    assert made.token_requester_principal_name == ("alice" if version == 3 else "")
    times = (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)
    assert times == (now_ms, now_ms + DAY_MS, now_ms + 7 * DAY_MS)
    (told,) = alice.describe(is_all=True, version=version).tokens
    assert told == DescribedToken(
        principal_type="User", principal_name="alice",
        token_requester_principal_type="User" if version == 3 else "",
        token_requester_principal_name="alice" if version == 3 else "",
        issue_timestamp=times[0], expiry_timestamp=times[1], max_timestamp=times[2],
        token_id=made.token_id, hmac=made.hmac, renewers=(somebody("bob"),),
    )  # fmt: skip


def test_nobody_has_tokens_without_a_key() -> None:
    """Then it is 61; a client that need not say who it is hears 64 before that."""
    alice = Holder.by_password(Secured())
    made = alice.create()
    assert (made.error_code, made.token_id, made.hmac, made.issue_timestamp_ms) == (61, "", b"", 0)
    assert alice.renew(b"x") == alice.expire(b"x") == (61, 0)
    assert alice.describe(is_all=True).error_code == 61
    plain = Secured(KEY | {"listeners": "SASL_PLAINTEXT://:0,PLAINTEXT://:0"})
    nobody = Holder(plain.peer(1))
    refused = nobody.create()
    assert (refused.error_code, refused.issue_timestamp_ms) == (64, -1)
    assert nobody.renew(b"x") == nobody.expire(b"x") == (64, -1)
    assert nobody.describe(is_all=True).error_code == 64


def test_whoever_has_a_token_comes_in() -> None:
    """It is taken for its owner, but asks for no tokens itself."""
    secured = Secured(KEY)
    made = Holder.by_password(secured).create()
    peer = log_in(secured, made.token_id, made.hmac)
    assert peer is not None
    assert peer.name == "User:alice"
    holder = Holder(peer)
    assert holder.create().error_code == holder.describe(is_all=True).error_code == 64
    assert holder.renew(made.hmac) == holder.expire(made.hmac) == (64, -1)
    assert log_in(secured, made.token_id, b"another secret") is None
    assert log_in(secured, "another token", made.hmac) is None
    assert log_in(secured, made.token_id, made.hmac, "tokenauth=false") is None
    assert log_in(secured, made.token_id, made.hmac, "tokenauth=TRUE") is not None


def test_a_session_ends_with_its_token() -> None:
    """The client learns for how long it is let in (KIP-368)."""
    secured = Secured(KEY)
    made = Holder.by_password(secured).create(lifetime_ms=5000)
    secured.pass_time(1000)
    peer = secured.peer()
    peer.handshake("SCRAM-SHA-256")
    client = ScramClient(made.token_id, base64.b64encode(made.hmac).decode())
    client.bare += ",tokenauth=true"
    answer = peer.token(client.final(peer.token(client.first)["auth_bytes"]))
    assert answer["session_lifetime_ms"] == 4000


def test_renewing() -> None:
    """Owner and renewers may, up to the longest that there is; others, and too late, not."""
    secured = Secured(KEY | {"delegation.token.expiry.time.ms": "10000"})
    alice, bob = Holder.by_password(secured), Holder.by_password(secured, BOB)
    made, own = alice.create("bob", lifetime_ms=30_000), alice.create()
    start_ms = made.issue_timestamp_ms
    assert made.expiry_timestamp_ms == start_ms + 10_000
    secured.pass_time(6000)
    assert bob.renew(made.hmac, version=1) == (0, start_ms + 16_000)
    assert alice.renew(made.hmac, 2000) == (0, start_ms + 8_000)
    assert alice.renew(made.hmac, 1_000_000) == (0, start_ms + 16_000)
    assert bob.renew(own.hmac) == (63, 0)
    assert bob.renew(b"no such secret") == (62, 0)
    secured.pass_time(9000)
    assert alice.renew(made.hmac) == (0, start_ms + 25_000)
    assert alice.renew(own.hmac) == (66, 0)
    assert bob.renew(own.hmac) == (66, 0)
    secured.pass_time(9000)
    assert alice.renew(made.hmac) == (0, start_ms + 30_000)


def test_ending() -> None:
    """At once with less than nothing; else as long from now, up to the longest that there is."""
    secured = Secured(KEY)
    alice, bob = Holder.by_password(secured), Holder.by_password(secured, BOB)
    made, own = alice.create("bob", lifetime_ms=30_000), alice.create()
    start_ms = made.issue_timestamp_ms
    assert bob.expire(made.hmac, 0, version=1) == (0, start_ms)
    assert bob.expire(made.hmac, 1 << 62) == (0, start_ms + 30_000)
    assert bob.expire(own.hmac) == (63, 0)
    assert alice.expire(own.hmac) == (0, start_ms)
    assert alice.expire(own.hmac) == (62, 0)
    assert alice.sees() == [made.token_id]
    secured.pass_time(30_001)
    assert alice.expire(made.hmac, 5) == (66, 0)
    assert alice.expire(made.hmac, -1) == (0, start_ms + 30_001)
    assert alice.sees() == []
    assert log_in(secured, own.token_id, own.hmac) is None


def test_tokens_that_have_ended_are_swept() -> None:
    """At the interval that the settings name."""
    interval = {"delegation.token.expiry.check.interval.ms": "1000"}
    secured = Secured(KEY | interval)
    secured.broker.start_housekeeping()
    alice = Holder.by_password(secured)
    gone, stays = alice.create(lifetime_ms=500), alice.create()
    assert alice.sees() == [gone.token_id, stays.token_id]
    secured.pass_time(999)
    assert alice.sees() == [gone.token_id, stays.token_id]
    secured.pass_time(1)
    assert alice.sees() == [stays.token_id]


def test_a_restart_knows_the_tokens() -> None:
    """They are in the metadata log; under another key the secret is another one."""
    secured = Secured(KEY)
    alice = Holder.by_password(secured)
    made, gone = alice.create(), alice.create()
    alice.expire(gone.hmac)
    secured.broker.close()
    for settings, is_known in ((KEY, True), ({"delegation.token.secret.key": "other"}, False)):
        broker = Broker.open(secured.host, DIRECTORY, {**SETTINGS, **settings})
        assert list(broker.delegation_tokens.known) == [made.token_id]
        assert (broker.delegation_tokens.secret_of(made.token_id) == made.hmac) is is_known
        broker.close()


def test_renewers_are_users() -> None:
    """Another kind of principal is 67, and nothing is made."""
    alice = Holder.by_password(Secured(KEY))
    assert alice.create("Group:g").error_code == 67
    assert alice.sees() == []


def test_an_owner_has_a_kind() -> None:
    """Over a name without one Kafka stumbles: it is -1, and told of nobody."""
    alice = Holder.by_password(Secured(KEY))
    request = CreateDelegationTokenRequest(
        owner_principal_name="bob", renewers=(), max_lifetime_ms=-1
    )
    refused = alice.ask(38, request, CreateDelegationTokenResponse, 3)
    assert (refused.error_code, refused.principal_name, refused.hmac) == (-1, "ANONYMOUS", b"")
    requester = refused.token_requester_principal_type, refused.token_requester_principal_name
    assert requester == ("User", "ANONYMOUS")
    assert alice.sees() == []


def test_metadata_from_before_there_were_tokens() -> None:
    """They are kept as they are, and it is 35."""
    secured = Secured(KEY)
    secured.broker.store.metadata.image.features["metadata.version"] = 13
    alice = Holder.by_password(secured)
    assert alice.create().error_code == 35
    assert alice.renew(b"x") == alice.expire(b"x") == (35, 0)


def test_whose_tokens_are_told() -> None:
    """Those of whom is named, as owner, renewer or who asked; no list is all, an empty one none."""
    secured = Secured(KEY)
    alice, bob = Holder.by_password(secured), Holder.by_password(secured, BOB)
    first, second = alice.create("carol"), bob.create()
    assert alice.describe().tokens == ()
    assert [one.token_id for one in alice.describe("carol").tokens] == [first.token_id]
    assert [one.token_id for one in alice.describe("bob", "dan").tokens] == [second.token_id]
    assert alice.sees() == bob.sees() == [first.token_id, second.token_id]  # there are no rules
    third = alice.create(owner="dan")
    assert [one.token_id for one in bob.describe("alice").tokens] == [
        first.token_id,
        third.token_id,
    ]


def test_rules_say_who_makes_and_sees_tokens() -> None:
    """For others one needs CreateTokens; to see theirs Describe, or DescribeTokens of the owner."""
    secured = Secured(RULED)
    alice, bob = Holder.by_password(secured), Holder.by_password(secured, BOB)
    refused = alice.create(owner="bob")
    assert (refused.error_code, refused.principal_name) == (65, "bob")
    mine, his = alice.create(), bob.create()
    assert (alice.sees(), bob.sees()) == ([mine.token_id], [his.token_id])
    rule(secured, creation(ResourceType.USER, "User:bob", Operation.CREATE_TOKENS))
    made = alice.create(owner="bob")
    who = made.principal_name, made.token_requester_principal_name
    assert (made.error_code, who) == (0, ("bob", "alice"))
    assert alice.sees() == [mine.token_id, made.token_id]  # who asked for it sees it
    rule(secured, creation(ResourceType.DELEGATION_TOKEN, his.token_id, Operation.DESCRIBE))
    assert alice.sees() == [mine.token_id, his.token_id, made.token_id]
    other = bob.create()
    assert other.token_id not in alice.sees()
    rule(secured, creation(ResourceType.USER, "User:bob", Operation.DESCRIBE_TOKENS))
    assert other.token_id in alice.sees()
    peer = log_in(secured, made.token_id, made.hmac)
    assert peer is not None
    assert peer.name == "User:bob"


def rule(secured: Secured, wanted: dict[str, Any]) -> None:
    """Let a rule hold."""
    peer = secured.peer().log_in()
    peer.connection.client.principal = peer.connection.client.principal._replace(name="admin")
    answer = peer.ask("CreateAcls", 3, {"creations": [wanted]}).message
    assert answer["results"][0]["error_code"] == 0
