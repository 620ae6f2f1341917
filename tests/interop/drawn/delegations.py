"""Delegation tokens are made, renewed, told, ended and used, by owners, renewers and strangers."""

from __future__ import annotations

import base64
import time
from typing import Any

from tests.interop.drawn.inquiries import INT32_MAX, INT64_MAX, doubled, some
from tests.interop.drawn.pair import Pair
from tests.interop.drawn.scram_talk import ScramTalk
from tests.interop.drawn.twin import Answer
from tests.interop.drawn.world import CHANGE_SECONDS, World
from tests.interop.security_stage import PASSWORDS

HOUR_MS = 3_600_000
#: long enough that a session does not see the end, or over at once
PERIODS_MS = (
    -1, -1, -1, 0, 1, -2, -(2**63), HOUR_MS, 10 * HOUR_MS, 30 * 24 * HOUR_MS, INT64_MAX, INT32_MAX,
    INT64_MAX - 1, 2**62, -5,
)  # fmt: skip
KINDS = (*["User"] * 12, "Group", "user", "", " User", "a:b")
DELEGATE = "SASL by token"
ALICE, BOB = PASSWORDS


def line_of(world: World, user: str) -> str:
    """Return the line by which a user asks, who has logged in; of nobody a plain one."""
    line = f"SASL {user}"
    if user == "nobody":
        return "main"
    if not world.twin.has_line(line):
        if not world.tokens:
            learn_tokens(world)
        world.twin.exchange("SaslHandshake", 1, {"Mechanism": "PLAIN"}, line)
        token = f"\0{user}\0{PASSWORDS[user]}".encode()
        world.twin.exchange("SaslAuthenticate", 2, {"AuthBytes": token}, line)
    return line


def learn_tokens(world: World) -> None:
    """Learn what both call the tokens that other sessions have left."""
    world.tokens.append((Pair(b"", b""), Pair("", "")))
    line = line_of(world, ALICE)
    answer = world.twin.exchange("DescribeDelegationToken", 3, {"Owners": None}, line)
    sides = [sorted(one["Tokens"], key=lambda it: it["IssueTimestamp"]) for one in answer]
    for ours, real in zip(*sides, strict=True):
        world.twin.comparison.learn(ours["TokenId"], real["TokenId"])
        world.twin.comparison.learn(ours["Hmac"], real["Hmac"])


def change(world: World, api: str, body: dict[str, Any], version: int | None = None) -> Answer:
    """Ask for a change, and wait until the real one's broker and controller know of it."""
    answer = world.ask(api, body, version, line_of(world, asker(world)))
    everybody = line_of(world, ALICE)
    world.twin.ask("DescribeDelegationToken", 3, {"Owners": None}, everybody)
    time.sleep(CHANGE_SECONDS)
    return answer


def asker(world: World) -> str:
    """Draw who asks."""
    return str(world.pick(*[ALICE] * 6, *[BOB] * 4, "nobody"))


def somebody(world: World) -> dict[str, Any]:
    """Draw a principal."""
    name = world.pick(ALICE, ALICE, BOB, BOB, world.numbered("other"), "", "c:d", "\u00fc")
    return {"PrincipalType": world.pick(*KINDS), "PrincipalName": name}


def create(world: World) -> None:
    """Have a token made, for oneself or for somebody else."""
    version = world.version("CreateDelegationToken")
    renewers = [somebody(world) for _ in range(world.pick(0, 0, 1, 1, 2))]
    body: dict[str, Any] = {
        "Renewers": doubled(world, renewers),
        "MaxLifetimeMs": world.pick(*PERIODS_MS),
    }
    if version >= 3 and world.likely(0.4):
        owner = somebody(world)
        body["OwnerPrincipalType"] = owner["PrincipalType"]
        body["OwnerPrincipalName"] = owner["PrincipalName"]
        if world.likely(0.15):
            body[world.pick("OwnerPrincipalType", "OwnerPrincipalName")] = None
    answer = change(world, "CreateDelegationToken", body, version)
    secret = answer.made(lambda told: told["Hmac"])
    if secret is not None and all(secret):
        world.tokens.append((secret, answer.made(lambda told: told["TokenId"])))


def secret_of(world: World) -> Any:
    """Draw a token's secret, or what is none."""
    if world.tokens and world.likely(0.9):
        return world.chance.choice(world.tokens)[0]
    return world.pick(b"", b"\0", b"no such secret", bytes(64))


def renew(world: World) -> None:
    """Let a token last longer."""
    body = {"Hmac": secret_of(world), "RenewPeriodMs": world.pick(*PERIODS_MS)}
    change(world, "RenewDelegationToken", body)


def expire(world: World) -> None:
    """Let a token end, now or later."""
    body = {"Hmac": secret_of(world), "ExpiryTimePeriodMs": world.pick(*PERIODS_MS)}
    change(world, "ExpireDelegationToken", body)


def describe(world: World) -> None:
    """Ask for the tokens of some, of nobody, of everybody."""
    owners: Any = doubled(world, [somebody(world) for _ in range(world.pick(0, 1, 1, 2))])
    body = {"Owners": None if world.likely(0.4) else owners}
    world.ask("DescribeDelegationToken", body, None, line_of(world, asker(world)))


def use(world: World) -> None:
    """Log in by a token, and ask what only others may."""
    world.twin.hang_up(DELEGATE)
    line_of(world, ALICE)
    secret, token_id = world.chance.choice(world.tokens)
    password = Pair(*(base64.b64encode(one).decode() for one in secret))
    if world.likely(0.1):
        password = Pair("wrong", "wrong")
    kind = world.pick("SCRAM-SHA-256", "SCRAM-SHA-512")
    more = world.pick(*[",tokenauth=true"] * 8, ",tokenauth=True", ",k=v", ",tokenauth=no")
    talk = ScramTalk(world, token_id, password, kind, more)
    world.ask("SaslHandshake", {"Mechanism": kind}, 1, DELEGATE)
    first = world.ask("SaslAuthenticate", {"AuthBytes": talk.first()}, None, DELEGATE)
    challenges = first.made(lambda told: told["AuthBytes"])
    if challenges and all(one.startswith(b"r=") for one in challenges):
        final = talk.final(challenges)
        world.ask("SaslAuthenticate", {"AuthBytes": final}, None, DELEGATE)
    api, body = world.pick(
        ("CreateDelegationToken", {"Renewers": [], "MaxLifetimeMs": -1}),
        ("RenewDelegationToken", {"Hmac": secret, "RenewPeriodMs": -1}),
        ("ExpireDelegationToken", {"Hmac": secret, "ExpiryTimePeriodMs": -1}),
        ("DescribeDelegationToken", {"Owners": None}), ("Metadata", {"Topics": []}),
        ("DescribeCluster", {}),
    )  # fmt: skip
    world.ask(api, body, None, DELEGATE)


def passwords(world: World) -> None:
    """Change who may log in by SCRAM, out to the edges: of others than those who log in here."""
    names = (world.numbered("user"), world.numbered("user"), "", " ", "a,b=c", "\u00fc", "x" * 300)
    deletions = [
        {"Name": name, "Mechanism": world.pick(1, 1, 2, 2, 0, 3, -1, 127)}
        for name in some(world, *names)
    ]
    upsertions = [
        {
            "Name": name,
            "Mechanism": world.pick(1, 1, 1, 2, 2, 0, 3, -128),
            "Iterations": world.pick(4096, 4096, 4096, 4095, 16384, 16385, 0, -1, INT32_MAX),
            "Salt": world.pick(b"salt", b"", b"\0" * 100, b","),
            "SaltedPassword": world.pick(b"p" * 32, b"p" * 64, b"p", b"", b"\0" * 200),
        }
        for name in some(world, *names)
    ]
    body = {"Deletions": doubled(world, deletions), "Upsertions": doubled(world, upsertions)}
    world.ask("AlterUserScramCredentials", body, None, line_of(world, asker(world)))
