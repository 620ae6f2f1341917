"""
Signatures of requests: HMAC-SHA1 over the fields' values in the order of their names, and the body.

Source: ``AclUtils``, ``AclSigner``, ``AclClientRPCHook``, ``DefaultAuthenticationContextBuilder``.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.settings import Credentials
    from logstore.compat.rocketmq.wire.remoting import Command

ACCESS_KEY, SIGNATURE, SECURITY_TOKEN = "AccessKey", "Signature", "SecurityToken"
#: a field that clients up to 4.9.3 add after they have signed
_UNIQUE_QUERY = "_UNIQUE_KEY_QUERY"
_VERSION_4_9_3 = 399


def signature_of(content: bytes, password: str) -> str:
    """Return what somebody with that password signs `content` with, in base 64."""
    return base64.b64encode(hmac.digest(_bytes(password), content, "sha1")).decode()


def signed_content(request: Command) -> bytes:
    """Return what of a request is signed."""
    fields = request.ext_fields
    if request.version <= _VERSION_4_9_3 and _UNIQUE_QUERY in fields:
        fields = {name: value for name, value in fields.items() if name != _UNIQUE_QUERY}
    return _content(fields, request.body)


def is_same(expected: str, given: str) -> bool:
    """Tell whether two signatures are the same, in a time that tells nothing else."""
    return hmac.compare_digest(_bytes(expected), _bytes(given))


def signed_fields(
    credentials: Credentials, fields: Mapping[str, str], body: bytes
) -> dict[str, str]:
    """Return the fields of a request of ours with who asks, and his signature."""
    signed = {**fields, ACCESS_KEY: credentials.access_key}
    if credentials.security_token is not None:
        signed[SECURITY_TOKEN] = credentials.security_token
    signed[SIGNATURE] = signature_of(_content(signed, body), credentials.secret_key)
    return signed


def _content(fields: Mapping[str, str], body: bytes | memoryview) -> bytes:
    values = [fields[name] for name in sorted(fields) if name != SIGNATURE]
    return _bytes("".join(values)) + body


def _bytes(text: str) -> bytes:
    """Return UTF-8 as Java writes it: half a character becomes a question mark."""
    return text.encode("utf-8", "replace")
