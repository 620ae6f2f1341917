"""What reads signed tokens and the keys of those who sign, and honest examples of both."""

from __future__ import annotations

import jwt

from logstore.compat.kafka.security.sasl.jwks import KeySet
from logstore.compat.kafka.security.sasl.signed_token import SignedTokenRules
from logstore.compat.kafka.security.sasl.unsecured_token import TokenError

SIGNED = (
    jwt.PyJWS()
    .encode(
        b'{"sub":"a","exp":1700000060,"iat":1700000}', b"0123456789abcdef0123456789abcdef", "HS256",
        headers={"kid": "k"},
    )
    .encode()
)  # fmt: skip
KEYS = b'{"keys":[{"kty":"oct","kid":"k","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}]}'


def signed_token(data: bytes) -> object:
    """Read a token as text, with a key that fits any."""
    rules = SignedTokenRules()
    return rules.identity(data.decode("latin-1"), lambda _: b"", 1_700_000_000_000)


def key_set(data: bytes) -> object:
    """Read keys, and look for one among them."""
    try:
        return KeySet.of(data).verify(SIGNED.decode())
    except ValueError as error:
        raise TokenError(str(error)) from error
