"""Delegation tokens: what a broker answers, what Java's tools make of it, what a restart knows."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.delegation_tokens.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenExpiryResponse,
    TokenPrincipal,
)
from logstore.compat.kafka.nodes.quorum_messages import (
    AddRaftVoterRequest,
    OutcomeResponse,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
    VoterListener,
)
from logstore.segments.kafka.internal_topics.schema import NO_ID, Message
from tests.interop.conftest import RunTool
from tests.interop.eventually import eventually
from tests.interop.own_wire import ask_own
from tests.interop.raw_wire import Wire
from tests.interop.sasl_wire import SaslWire, ScramClient, plain_token
from tests.interop.security_stage import (
    Certificates,
    Secured,
    both_secured,
    enter_users,
    our_secured,
    real_secured,
    wait_for_all,
)

pytestmark = pytest.mark.interop

#: times are told relative to a token's beginning, in hours
HOUR_MS = 3_600_000
EXPIRED = -1
BOB = TokenPrincipal(principal_type="User", principal_name='b,o=b "x"')
LOGINS = {"alice": "alice-secret", "bob": "pass word"}
TOOL = "org.apache.kafka.tools.DelegationTokenCommand"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Secured]]:
    """Both brokers."""
    with both_secured(tmp_path_factory.mktemp("secured")) as found:
        yield found


def logged_in(secured: Secured, name: str = "alice") -> SaslWire:
    """Come in by a password."""
    wire = SaslWire(secured.listeners["SASL"])
    wire.handshake("PLAIN")
    user = BOB.principal_name if name == "bob" else name
    found = wire.token(plain_token(user, LOGINS[name]))
    assert isinstance(found, dict)
    assert not found["error_code"]
    return wire


def by_token(secured: Secured, token_id: str, secret: bytes, kind: str = "SHA-256") -> (
    SaslWire | None
):  # fmt: skip
    """Come in by a token; None if that fails."""
    wire = SaslWire(secured.listeners["SASL"])
    wire.handshake(f"SCRAM-{kind}")
    client = ScramClient(token_id, base64.b64encode(secret).decode(), kind.replace("-", "").lower())
    client.bare += ",tokenauth=true"
    asked: Any = wire.token(client.first)
    if asked["error_code"]:
        return None
    answer: Any = wire.token(client.final(asked["auth_bytes"]))
    return wire if client.is_proved(answer["auth_bytes"]) else None


def create(wire: Wire, *, version: int = 3, **fields: Any) -> CreateDelegationTokenResponse:
    """Ask for a token."""
    request = CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1)
    request = attrs.evolve(request, **fields)
    made = ask_own(wire, 38, version, request, CreateDelegationTokenResponse)
    if made.token_id:  # a real broker learns of it from its controller
        eventually(lambda: made.token_id in known(wire), what="the token")
    return made


def change(wire: Wire, key: int, secret: bytes, period_ms: int, version: int = 2) -> (
    TokenExpiryResponse
):  # fmt: skip
    """Renew a token (39) or let it end (40)."""
    request: Message = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)
    if key == 40:
        request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
    answer = ask_own(wire, key, version, request, TokenExpiryResponse)
    if answer.expiry_timestamp_ms > 0:
        ends_ms = answer.expiry_timestamp_ms
        eventually(lambda: _is_done(wire, secret, period_ms, ends_ms), what="the new end")
    return answer


def _is_done(wire: Wire, secret: bytes, period_ms: int, ends_ms: int) -> bool:
    found = [one for one in describe(wire, is_all=True).tokens if one.hmac == secret]
    if period_ms == EXPIRED:
        return not found
    return [one.expiry_timestamp for one in found] == [ends_ms]


def describe(
    wire: Wire, *owners: TokenPrincipal, is_all: bool = False, version: int = 3
) -> DescribeDelegationTokenResponse:
    """Ask which tokens there are."""
    request = DescribeDelegationTokenRequest(owners=None if is_all else owners)
    return ask_own(wire, 41, version, request, DescribeDelegationTokenResponse)


def known(wire: Wire) -> dict[str, int]:
    """Return when each token ends."""
    found = describe(wire, is_all=True).tokens
    return {one.token_id: one.expiry_timestamp for one in found}


def compared(message: Any) -> Any:
    """Return an answer without what is drawn by lot; times are hours after now."""
    found = attrs.asdict(message)

    def plain(name: str, value: Any) -> Any:
        if name in ("hmac", "token_id"):
            return bool(value)
        if "timestamp" in name and value > HOUR_MS:
            return "a time"
        return value

    tokens = [
        {name: plain(name, value) for name, value in one.items()}
        for one in found.get("tokens") or ()
    ]
    return {name: plain(name, value) for name, value in found.items()} | {"tokens": tokens}


def lives(message: CreateDelegationTokenResponse) -> tuple[int, int]:
    """Return how long a token lasts unless it is renewed, and at most."""
    start_ms = message.issue_timestamp_ms
    return message.expiry_timestamp_ms - start_ms, message.max_timestamp_ms - start_ms


def questions(secured: Secured) -> Iterator[Any]:
    """Tokens of alice's and bob's, in every version, right and wrong."""
    alice, bob = logged_in(secured), logged_in(secured, "bob")
    for version in (1, 2, 3):
        made = create(alice, renewers=(BOB,), version=version)
        yield compared(made)
        yield lives(made)
        yield compared(describe(alice, is_all=True, version=version))
        for key in (39, 40):
            yield compared(change(bob, key, made.hmac, HOUR_MS, version=min(version, 2)))
        yield compared(change(bob, 40, made.hmac, EXPIRED))
        yield compared(change(alice, 40, made.hmac, EXPIRED))
    own = create(alice, max_lifetime_ms=2 * HOUR_MS)
    yield lives(own)
    for key in (39, 40):
        yield compared(change(bob, key, own.hmac, HOUR_MS))
        yield compared(change(bob, key, b"no such secret", HOUR_MS))
        yield compared(change(alice, key, own.hmac, 5 * HOUR_MS)), lives(own)
    group = TokenPrincipal(principal_type="Group", principal_name="g")
    yield compared(create(alice, renewers=(group,)))
    of_bob = create(alice, owner_principal_type="User", owner_principal_name=BOB.principal_name)
    yield compared(of_bob)
    for owners in ((), (BOB,), (BOB, group)):
        yield compared(describe(alice, *owners))
    wire = by_token(secured, own.token_id, own.hmac)
    assert wire is not None
    yield from refused(wire, own.hmac)
    with Wire(secured.listeners["PLAIN"]) as plain:
        yield from refused(plain, own.hmac)
    yield by_token(secured, own.token_id, own.hmac, "SHA-512") is not None
    yield by_token(secured, own.token_id, b"another secret") is not None
    for made in (own, of_bob):
        yield (
            compared(change(alice, 40, made.hmac, EXPIRED))
            if made is own
            else compared(change(bob, 40, made.hmac, EXPIRED))
        )
    eventually(lambda: by_token(secured, own.token_id, own.hmac) is None, what="the token's end")
    yield describe(alice, is_all=True).tokens


def refused(wire: Wire, secret: bytes) -> Iterator[Any]:
    """Ask everything of somebody who may ask nothing."""
    yield compared(create(wire))
    yield compared(describe(wire, is_all=True))
    for key in (39, 40):
        yield compared(change(wire, key, secret, EXPIRED))


def test_every_answer_is_the_same(secured: list[Secured]) -> None:
    """Codes, names, times: token by token."""
    real, ours = ([*questions(one)] for one in secured)
    for number, (theirs, mine) in enumerate(zip(real, ours, strict=True)):
        assert mine == theirs, number


def of_the_quorum() -> Iterator[tuple[int, int, Message]]:
    """Voters and brokers that there are not, and what names none."""
    for broker_id in (99, -1):
        yield 64, 0, UnregisterBrokerRequest(broker_id=broker_id)
    there = VoterListener(name="CONTROLLER", host="localhost", port=9999)
    elsewhere = attrs.evolve(there, name="OTHER")
    some_id = uuid.UUID(int=77)
    for version in (0, 1):
        for listeners in ((there,), (), (elsewhere,), (elsewhere, there)):
            for voter_id, directory in ((5, some_id), (-5, some_id), (5, NO_ID)):
                yield 80, version, AddRaftVoterRequest(
                    cluster_id=None, timeout_ms=1000, voter_id=voter_id,
                    voter_directory_id=directory, listeners=listeners,
                )  # fmt: skip
    for voter_id, directory in ((1, some_id), (-5, some_id), (5, NO_ID)):
        yield (
            81,
            0,
            RemoveRaftVoterRequest(
                cluster_id=None, voter_id=voter_id, voter_directory_id=directory
            ),
        )
    yield (
        80,
        0,
        AddRaftVoterRequest(
            cluster_id="x", timeout_ms=1, voter_id=-1, voter_directory_id=NO_ID, listeners=()
        ),
    )
    yield 81, 0, RemoveRaftVoterRequest(cluster_id="x", voter_id=-1, voter_directory_id=NO_ID)


def test_voters_and_brokers_stay(secured: list[Secured]) -> None:
    """The same refusals, in the same words, but for the cluster's own id."""
    for key, version, request in of_the_quorum():
        found: list[Any] = []
        for one in secured:
            with Wire(one.listeners["PLAIN"]) as wire:
                answer = ask_own(wire, key, version, request, OutcomeResponse)
            text = re.sub(r"cluster id \".*\"", "cluster id", answer.error_message or "")
            found.append((answer.error_code, text))
        assert found[0] == found[1], request


@pytest.mark.slow
def test_java_tools(secured: list[Secured], tmp_path: Path, kafka_tool: RunTool) -> None:
    """A token is made by ``kafka-delegation-tokens``, and a producer comes in by it."""
    ours = secured[1]
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    where = ("--bootstrap-server", ours.listeners["SASL"], "--command-config")
    config = tmp_path / "alice.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={login} username="alice" password="alice-secret";\n'
    )
    made = kafka_tool(
        TOOL, *where, str(config), "--create", "--max-life-time-period", "-1",
        "--renewer-principal", "User:carol",
    ).stdout  # fmt: skip
    token_id, secret = re.findall(r"^(\S{22})\s+(\S{80,})\s", made, re.MULTILINE)[0]
    told = kafka_tool(TOOL, *where, str(config), "--describe", "--owner-principal", "User:alice")
    assert token_id in told.stdout
    assert "User:carol" in told.stdout
    renewed = kafka_tool(
        TOOL, *where, str(config), "--renew", "--renew-time-period", "-1", "--hmac", secret
    )
    assert "Completed renew operation" in renewed.stdout
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={login} username="{token_id}" password="{secret}" tokenauth="true";\n'
    )
    kafka_tool(
        "ConsoleProducer", "--bootstrap-server", ours.listeners["SASL"], "--topic", "by-token",
        "--command-config", str(config), stdin="one\ntwo\n",
    )  # fmt: skip
    read = kafka_tool(
        "ConsoleConsumer", "--bootstrap-server", ours.listeners["PLAIN"], "--topic", "by-token",
        "--from-beginning", "--max-messages", "2", "--timeout-ms", "20000",
    )  # fmt: skip
    assert read.stdout.split() == ["one", "two"]


@pytest.mark.slow
def test_tokens_come_along(tmp_path: Path) -> None:
    """Theirs are ours, and those that came, were renewed or went with us are theirs again."""
    certificates = Certificates.made_in(tmp_path)
    for name in ("real", "ours"):
        (tmp_path / name).mkdir()
    with real_secured(tmp_path / "real", certificates) as real:
        enter_users(real.listeners["PLAIN"])
        alice = logged_in(real)
        kept, gone = create(alice, renewers=(BOB,)), create(alice)
        peer = real.broker
        peer.stop()
        with our_secured(tmp_path / "ours", certificates, peer.data) as ours:
            assert by_token(ours, kept.token_id, kept.hmac) is not None
            alice = logged_in(ours)
            before = describe(alice, is_all=True).tokens
            assert {one.token_id: one.hmac for one in before} == {
                kept.token_id: kept.hmac, gone.token_id: gone.hmac,
            }  # fmt: skip
            made = create(alice)
            change(alice, 39, kept.hmac, HOUR_MS)
            change(alice, 40, gone.hmac, EXPIRED)
            after = describe(alice, is_all=True).tokens
        peer.log.unlink()
        peer.start()
        wait_for_all(real.listeners)
        eventually(
            lambda: by_token(real, made.token_id, made.hmac) is not None, what="the new token"
        )
        assert by_token(real, gone.token_id, gone.hmac) is None
        found = describe(logged_in(real), is_all=True).tokens
        assert sorted(map(str, found)) == sorted(map(str, after))
        assert " ERROR " not in peer.log.read_text()
