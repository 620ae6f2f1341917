"""
SCRAM: both sides prove that they know the password, and neither says it (RFC 5802, 7677).

::

    C: n,,n=user,r=rOprNGfwEbeRWgbNEkqO
    S: r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096
    C: c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjf...
    S: v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=

There is no channel binding. With the extension ``tokenauth=true`` the name is the id of a
delegation token, and the password its secret in base64. Proofs are made of what Kafka keeps of a
message: of the first one without what is reserved (``m=``), and each extension once; of the final
one without extensions. Source: ``ScramSaslServer``, ``ScramMessages``.
"""

from __future__ import annotations

import base64
import hmac
import re
import string
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.security.sasl.exchange import (
    Identity,
    SaslAuthenticationError,
    SaslError,
    StumbledError,
)
from logstore.compat.kafka.security.sasl.scram_mechanism import ITERATIONS_MIN, ScramMechanism
from logstore.segments.kafka.cluster_metadata.records import UserScramCredentialRecord

if TYPE_CHECKING:
    from logstore.compat.kafka.delegation_tokens.delegation_tokens import TokenLogin

_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,"
    rf"(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS})"
)
_CLIENT_FINAL = re.compile(
    rf"c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS},p=(?P<proof>{_BASE64})"
)
_NONCE_CHARACTERS = string.ascii_lowercase + string.digits
_NONCE_SIZE = 26
#: what a client adds that authenticates by a delegation token
_DELEGATED = "tokenauth"

#: returns what is kept of a user; None of one who is not known
FindCredential = Callable[[str], UserScramCredentialRecord | None]
#: returns what is to be known of a token by its id; None of one that there is not
FindToken = Callable[[str], "TokenLogin | None"]


class _Asked(NamedTuple):
    """What the client was asked, and with which of its words the proof has to be made."""

    credential: UserScramCredentialRecord
    identity: Identity
    first: str
    nonce: str
    challenge: str


class ScramExchange:
    """Two tokens of the client, two answers."""

    def __init__(
        self, mechanism: ScramMechanism, find: FindCredential, find_token: FindToken, rng: Random
    ) -> None:
        self._mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._rng = rng
        self._asked: _Asked | None = None
        self.identity: Identity | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Answer the client's next token."""
        asked, self._asked = self._asked, None
        message = token.decode(errors="replace")
        if asked is not None:
            return self._conclude(asked, message)
        self._asked = self._begin(message)
        return self._asked.challenge.encode()

    def _begin(self, message: str) -> _Asked:
        match = _CLIENT_FIRST.fullmatch(message)
        if match is None:
            raise SaslError("the client's first message is none of SCRAM")
        name = match["name"].replace("=2C", ",").replace("=3D", "=")
        extensions = _extensions(match["extensions"])
        is_by_token = extensions.get(_DELEGATED, "").lower() == "true"
        credential, identity = self._token(name) if is_by_token else self._user(name)
        if match["authzid"] not in (None, name):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        if credential.iterations < ITERATIONS_MIN:
            raise SaslError(f"fewer than {ITERATIONS_MIN} iterations")
        nonce = match["nonce"] + "".join(self._rng.choices(_NONCE_CHARACTERS, k=_NONCE_SIZE))
        salt = base64.b64encode(credential.salt).decode()
        challenge = f"r={nonce},s={salt},i={credential.iterations}"
        words = {"n": match["name"], "r": match["nonce"]}
        first = ",".join(f"{key}={value}" for key, value in [*words.items(), *extensions.items()])
        return _Asked(credential, identity, first, nonce, challenge)

    def _user(self, name: str) -> tuple[UserScramCredentialRecord, Identity]:
        credential = self._find(name)
        if credential is None:
            raise SaslError(f"user {name} is not known")
        return credential, Identity(credential.name)

    def _token(self, token_id: str) -> tuple[UserScramCredentialRecord, Identity]:
        token = self._find_token(token_id)
        if token is None:
            raise SaslError(f"delegation token {token_id} is not known")
        return token.credential, Identity(token.owner.name, token.expiry_ms, is_by_token=True)

    def _conclude(self, asked: _Asked, message: str) -> bytes:
        match = _CLIENT_FINAL.fullmatch(message)
        if match is None:
            raise SaslError("the client's final message is none of SCRAM")
        if match["nonce"] != asked.nonce:
            raise SaslError("the client's final message has another nonce")
        channel = base64.b64encode(base64.b64decode(match["channel"])).decode()
        unproved = f"c={channel},r={asked.nonce}"
        said = ",".join((asked.first, asked.challenge, unproved)).encode()
        mechanism, credential = self._mechanism, asked.credential
        signature = mechanism.hmac(credential.stored_key, said)
        proof = base64.b64decode(match["proof"])
        if len(proof) != len(signature):
            raise StumbledError(f"a proof of {len(proof)} bytes")
        key = bytes(ours ^ theirs for ours, theirs in zip(signature, proof, strict=True))
        if not hmac.compare_digest(mechanism.hash(key), credential.stored_key):
            raise SaslError("the client does not know the password")
        self.identity = asked.identity
        return b"v=" + base64.b64encode(mechanism.hmac(credential.server_key, said))


def _extensions(text: str) -> dict[str, str]:
    """Return what stands behind a first message; of what comes twice the last counts."""
    return dict(one.split("=", 1) for one in text.split(",") if one)
