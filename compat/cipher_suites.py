"""
Java's names of cipher suites, as OpenSSL calls them.

Those of TLS 1.3 cannot be chosen one by one here: any of them stands for all of its three.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence

_OF_1_3 = re.compile(r"TLS_(AES_(128|256)_(GCM|CCM|CCM_8)|CHACHA20_POLY1305)_SHA(256|384)")
_OF_1_2 = re.compile(r"TLS_(?P<exchange>\w+?)_WITH_(?P<cipher>\w+)_(?P<hash>SHA\d*)")


def offer_suites(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """
    Let a context offer these suites only; all that are safe where none is named.

    Raises:
        ssl.SSLError: none of them is known here.

    """
    if not names:
        return
    older = [openssl_name(name) for name in names if not _OF_1_3.fullmatch(name)]
    if len(older) == len(names):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    elif not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    context.set_ciphers(":".join(older))


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite before TLS 1.3; an unknown one as it is."""
    match = _OF_1_2.fullmatch(name)
    if match is None:
        return name
    cipher = re.sub(r"AES_(\d+)", r"AES\1", match["cipher"]).removesuffix("_CBC")
    parts = [] if match["exchange"] == "RSA" else [match["exchange"]]
    parts.append(cipher)
    if "CHACHA20" not in cipher:
        parts.append(match["hash"])
    return "-".join(parts).replace("_", "-")
