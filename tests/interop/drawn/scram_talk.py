"""A client of SCRAM that says what it likes: names, extensions and proofs, right and wrong ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from tests.interop.drawn.pair import Pair, of_side
from tests.interop.drawn.world import World
from tests.interop.security_stage import PASSWORDS

#: names as they are written in a message
NAMES = (
    *["alice"] * 6, 'b=2Co=3Db "x"', "nobody", "", "al=ice", "ALICE", "\u00fc", "=2C", "alice=3D2C",
    'b,o=b "x"', "alice\0",
)  # fmt: skip
NONCES = (*["fyko+d2lbbFgONRv9qkxdawL"] * 8, "x", "", "a b", "a,b", "!~", "r=r", "\u00fc")
WHO = (*[""] * 12, "a=alice", "a=bob", "a=", "a=al=ice", 'a=b=2Co=3Db "x"', "b=alice")
RESERVED = (*[""] * 12, "m=x,", "m=,", "m=a=b,", "m=x")
EXTENSIONS = (
    *[""] * 8, ",k=v", ",k=v=w", ",k=a,k=b", ",tokenauth=false", ",tokenauth=true",
    ",tokenauth=TRUE", ",TOKENAUTH=true", ",tokenauth=trueish", ",tokenauth=true,tokenauth=false",
    ",tokenauth=false,tokenauth=true", ",=v", ",k=", ",k1=v", ",k", ",k=\u00fc", ",",
)  # fmt: skip
CHANNELS = (*["biws"] * 8, "", "eSws", "YR==", "biw", "biw=", "!!!!", "biwsYWxpY2U=")
FINAL_EXTENSIONS = (*[""] * 8, ",k=v", ",a=b,c=d", ",k=", ",=v", ",k")


class ScramTalk:
    """One exchange with both brokers."""

    def __init__(self, world: World, name: Any, password: Any, kind: str, more: str = "") -> None:
        self._world = world
        self._password = password
        self._hash = kind.removeprefix("SCRAM-").replace("-", "").lower()
        self._name = name
        self._nonce: str = world.pick(*NONCES)
        self._reserved: str = world.pick(*RESERVED)
        self._extensions: str = more or world.pick(*EXTENSIONS)
        self._header = f"{world.pick(*['n'] * 20, 'y', 'p=tls', '')},{world.pick(*WHO)},"

    @classmethod
    def drawn(cls, world: World, kind: str) -> ScramTalk:
        """Draw somebody who has a password, or has none."""
        name = world.pick(*NAMES)
        user = name.replace("=2C", ",").replace("=3D", "=")
        password = PASSWORDS.get(user, "x") if world.likely(0.85) else world.pick("", "wrong")
        return cls(world, name, password, kind)

    def first(self) -> Any:
        """Return the first token."""
        return Pair(*(self._header.encode() + self._bare_as_sent(side) for side in (0, 1)))

    def _bare_as_sent(self, side: int) -> bytes:
        name = of_side(self._name, side)
        return f"{self._reserved}n={name},r={self._nonce}{self._extensions}".encode()

    def _bare_as_kept(self, side: int) -> bytes:
        """Return what Kafka makes the proof of: without what is reserved, each extension once."""
        pairs = dict(one.split("=", 1) for one in self._extensions.split(",") if "=" in one)
        more = "".join(f",{key}={value}" for key, value in pairs.items())
        return f"n={of_side(self._name, side)},r={self._nonce}{more}".encode()

    def final(self, challenges: Any) -> Any:
        """Return the token that answers a challenge, most often a right one."""
        world = self._world
        channel = world.pick(*CHANNELS)
        extensions = world.pick(*FINAL_EXTENSIONS)
        ending = world.pick(*[None] * 8, "client's", "x")
        is_as_kept = world.likely(0.8)
        spoil = world.pick(
            *["no"] * 8, "flip", "short", "long", "none", "other padding", "no base64"
        )  # fmt: skip

        def of_one(side: int) -> bytes:
            words = dict(one.split("=", 1) for one in challenges[side].decode().split(","))
            nonce = {None: words["r"], "client's": self._nonce, "x": f"{words['r']}x"}[ending]
            sent = f"c={channel},r={nonce}{extensions}"
            bare = self._bare_as_kept(side) if is_as_kept else self._bare_as_sent(side)
            unproved = f"c={_canonical(channel)},r={nonce}" if is_as_kept else sent
            said = b",".join((bare, challenges[side], unproved.encode()))
            proof = self._proof(words, of_side(self._password, side), said)
            return f"{sent},p={_spoilt(proof, spoil)}".encode()

        return Pair(of_one(0), of_one(1))

    def _proof(self, words: dict[str, str], password: str, said: bytes) -> bytes:
        salted = hashlib.pbkdf2_hmac(
            self._hash, password.encode(), base64.b64decode(words["s"]), int(words["i"])
        )
        key = hmac.digest(salted, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, key).digest(), said, self._hash)
        return bytes(one ^ other for one, other in zip(key, signature, strict=True))


def _canonical(text: str) -> str:
    try:
        return base64.b64encode(base64.b64decode(text)).decode()
    except ValueError:
        return text


def _spoilt(proof: bytes, how: str) -> str:
    if how == "flip":
        proof = bytes([proof[0] ^ 1]) + proof[1:]
    proof = {"short": proof[:-1], "long": proof + b"\0", "none": b""}.get(how, proof)
    text = base64.b64encode(proof).decode()
    if how == "other padding":
        return text.rstrip("=")
    return f"!{text}" if how == "no base64" else text
