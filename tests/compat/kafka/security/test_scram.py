"""SCRAM: the exchanges of RFC 5802's kind that RFC 7677 prints, and what must not succeed."""

from __future__ import annotations

import base64
import random
from collections.abc import Sequence

import pytest

from logstore.compat.kafka.security.sasl.exchange import (
    Identity,
    SaslAuthenticationError,
    SaslError,
    StumbledError,
)
from logstore.compat.kafka.security.sasl.scram import ScramExchange
from logstore.compat.kafka.security.sasl.scram_mechanism import ScramMechanism
from logstore.segments.kafka.cluster_metadata.records import UserScramCredentialRecord

SHA_256, SHA_512 = ScramMechanism
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
CHALLENGE = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
FINAL = (
    f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
).encode()
PROOF_OF_SERVER = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


class Loaded(random.Random):
    """Chance that gives the nonce that the RFC prints."""

    def choices(self, *_: object, **__: object) -> list[str]:  # type: ignore[override]
        """Return it."""
        return list(SERVER_NONCE)


def credential(name: str = "user") -> UserScramCredentialRecord:
    """Return what is kept of a user whose password is the RFC's."""
    return SHA_256.credential(name, SHA_256.salted_password("pencil", SALT, 4096), SALT, 4096)


def exchange(known: Sequence[UserScramCredentialRecord] = (credential(),)) -> ScramExchange:
    """Return an exchange with somebody who knows these users."""
    by_name = {one.name: one for one in known}
    return ScramExchange(SHA_256, by_name.get, lambda _: None, Loaded())


def test_the_exchange_of_rfc_7677() -> None:
    """Challenge and proof are the printed ones, and the user is known at the end."""
    server = exchange()
    assert server.evaluate(FIRST) == CHALLENGE
    assert server.identity is None
    assert server.evaluate(FINAL) == PROOF_OF_SERVER
    assert server.identity == Identity("user")


def test_keys_of_both_kinds() -> None:
    """They have the length of their hash; only the right password fits."""
    for mechanism, size_bytes in ((SHA_256, 32), (SHA_512, 64)):
        kept = mechanism.credential_of("alice", "secret", random.Random(1))
        assert len(kept.stored_key) == len(kept.server_key) == size_bytes
        assert mechanism.is_of(kept, "secret")
        assert not mechanism.is_of(kept, "secreT")
        assert "secret" not in repr(kept)
        assert kept.salt.hex() not in repr(kept)


def test_commas_and_equals_signs_in_names() -> None:
    """They are written as the RFC says, and are themselves again here."""
    server = exchange([credential("a,b=c")])
    assert server.evaluate(b"n,,n=a=2Cb=3Dc,r=x").startswith(b"r=x")


@pytest.mark.parametrize(
    "first",
    [b"", b"n,,n=nobody,r=x", b"y,,n=user,r=x", b"n,,n=us=er,r=x", b"n,,n=user,r=", b"n,,r=x",
     b"n,,n=user,r=x,tokenauth=true", b"\xff\xfe", FINAL],
)  # fmt: skip
def test_a_first_message_that_is_not_taken(first: bytes) -> None:
    """The client is not told why."""
    with pytest.raises(SaslError) as caught:
        exchange().evaluate(first)
    assert not isinstance(caught.value, SaslAuthenticationError)


def test_somebody_elses_name() -> None:
    """To act for another is refused in words."""
    with pytest.raises(SaslAuthenticationError, match="different from username"):
        exchange().evaluate(b"n,a=root,n=user,r=x")
    assert exchange().evaluate(b"n,a=user,n=user,r=x")


@pytest.mark.parametrize(
    "final",
    [b"", FINAL[:-2], FINAL.replace(b"p=dH", b"p=dI"), FINAL.replace(b"hvYD", b"hvYE"),
     FINAL.replace(b"biws", b"eSws"), FINAL.replace(b",p=", b",x,p="), FIRST, FINAL + b"!"],
)  # fmt: skip
def test_a_final_message_that_is_not_taken(final: bytes) -> None:
    """Nobody is let in, and the exchange is over: the right one does not help any more."""
    server = exchange()
    server.evaluate(FIRST)
    with pytest.raises(SaslError):
        server.evaluate(final)
    with pytest.raises(SaslError):
        server.evaluate(FINAL)
    assert server.identity is None


def test_too_few_iterations() -> None:
    """A credential that is easily broken is of no use."""
    weak = SHA_256.credential("user", SHA_256.salted_password("pencil", SALT, 1), SALT, 1)
    with pytest.raises(SaslError, match="iterations"):
        exchange([weak]).evaluate(FIRST)


@pytest.mark.parametrize(
    ("first", "final"),
    [
        (FIRST, FINAL.replace(b",p=", b",x=y,p=")),
        (FIRST.replace(b"n,,", b"n,,m=x,"), FINAL),
        (FIRST.replace(b"n,,", b"n,a=user,"), FINAL),
    ],
)
def test_proofs_are_made_of_what_is_kept(first: bytes, final: bytes) -> None:
    """Extensions of the final message and what is reserved in the first are not in the proof."""
    server = exchange()
    server.evaluate(first)
    assert server.evaluate(final) == PROOF_OF_SERVER


def proof_of(bare: bytes, unproved: bytes = FINAL.split(b",p=", maxsplit=1)[0]) -> bytes:
    """Return a final message of who knows the password, for these words."""
    salted = SHA_256.salted_password("pencil", SALT, 4096)
    key = SHA_256.hmac(salted, b"Client Key")
    signature = SHA_256.hmac(SHA_256.hash(key), b",".join((bare, CHALLENGE, unproved)))
    proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    return unproved + b",p=" + base64.b64encode(proof)


def test_an_extension_that_comes_twice() -> None:
    """It is in the proof once, as it was told last."""
    bare = FIRST.removeprefix(b"n,,")
    server = exchange()
    server.evaluate(FIRST + b",k=a,k=b")
    assert server.evaluate(proof_of(bare + b",k=b")).startswith(b"v=")


def test_channels_are_spelled_as_java_does() -> None:
    """Of two ways to write the same bytes one is in the proof."""
    ending = FINAL.split(b",p=", maxsplit=1)[0].removeprefix(b"c=biws")
    final = proof_of(FIRST.removeprefix(b"n,,"), b"c=YQ==" + ending)
    server = exchange()
    server.evaluate(FIRST)
    assert server.evaluate(final.replace(b"c=YQ==", b"c=YR==")).startswith(b"v=")


@pytest.mark.parametrize("proof", [b"", base64.b64encode(bytes(31)), base64.b64encode(bytes(64))])
def test_a_proof_of_another_length(proof: bytes) -> None:
    """Kafka stumbles over it: the client is hung up on, and not answered."""
    server = exchange()
    server.evaluate(FIRST)
    with pytest.raises(StumbledError):
        server.evaluate(FINAL.split(b",p=", maxsplit=1)[0] + b",p=" + proof)


@pytest.mark.parametrize(
    ("extensions", "is_by_token"),
    [(b",tokenauth=true", True), (b",tokenauth=TRUE", True), (b",TOKENAUTH=true", False),
     (b",tokenauth=trueish", False), (b",tokenauth=true,tokenauth=no", False)],
)  # fmt: skip
def test_who_comes_by_a_token(extensions: bytes, *, is_by_token: bool) -> None:
    """The word is written small, the truth in any way, and what comes last counts."""
    server = exchange()
    if is_by_token:
        with pytest.raises(SaslError, match="delegation token"):
            server.evaluate(FIRST + extensions)
    else:
        assert server.evaluate(FIRST + extensions) == CHALLENGE
