"""
Headers of calls, what they mean; those of answers, as they are written.

What we answer is the same nearly always, and written without a table that the peer would have to
keep of it: a literal costs some bytes, and no thought.

Source: RFC 7541; "gRPC over HTTP2" for what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from logstore.errors import LogStoreError

_CONTENT_TYPE = b"application/grpc"
#: places in the table that everybody has
_STATUS_200, _NAME_STATUS, _NAME_CONTENT_TYPE = b"\x88", 8, 31
_MS_BY_UNIT = {"H": 3_600_000.0, "M": 60_000.0, "S": 1000.0, "m": 1.0, "u": 0.001, "n": 0.000_001}
_TIMEOUT_DIGITS_MAX = 8
_PSEUDO = frozenset((":method", ":scheme", ":path", ":authority"))
_NEEDED = (":method", ":scheme", ":path")
_TRAILERS = "trailers"
_OF_CONNECTIONS = frozenset(
    ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")
)


class MalformedHeadersError(LogStoreError):
    """A request has headers that no request may have; it is its stream's fault alone."""


def metadata_of(fields: Sequence[tuple[str, str]]) -> dict[str, str]:
    """
    Return the headers of a request by their names; of two of a name the last, as gRPC's in Java.

    Raises:
        MalformedHeadersError: they are not those of a request.

    """
    headers = dict(fields)
    if len(headers) < len(fields) or not _may_stand(tuple(headers)):
        headers = _checked(fields)
    if headers.get("te", _TRAILERS) != _TRAILERS:
        raise MalformedHeadersError(f"te: {headers['te']}")
    if not all(map(headers.get, _NEEDED)):
        raise MalformedHeadersError(f"no {', '.join(_NEEDED)}")
    return headers


@lru_cache(maxsize=256)
def _may_stand(names: tuple[str, ...]) -> bool:
    """Tell whether headers may have these names in this order: a client's are nearly the same."""
    try:
        _checked([(name, _TRAILERS) for name in names])
    except MalformedHeadersError:
        return False
    return True


def _checked(fields: Sequence[tuple[str, str]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    is_behind = False
    for name, value in fields:
        if name.startswith(":"):
            if is_behind or name in headers or name not in _PSEUDO:
                raise MalformedHeadersError(f"{name} where it has no place")
            headers[name] = value
            continue
        is_behind = True
        if name in _OF_CONNECTIONS or not name.islower():
            raise MalformedHeadersError(f"{name}: {value}")
        headers[name] = value
    return headers


def check_trailers(fields: Iterable[tuple[str, str]]) -> None:
    """Raise MalformedHeadersError for headers that may stand only before what they are of."""
    if any(name.startswith(":") for name, _ in fields):
        raise MalformedHeadersError("a pseudo-header behind a request")


def timeout_ms_of(text: str | None) -> float | None:
    """Return what ``grpc-timeout`` says, as ``200m``; None if it says nothing that is a time."""
    if not text or len(text) > _TIMEOUT_DIGITS_MAX + 1:
        return None
    unit = _MS_BY_UNIT.get(text[-1])
    return int(text[:-1]) * unit if unit is not None and text[:-1].isdecimal() else None


def _number(prefix: int, bits: int, value: int) -> bytes:
    """Return a number whose first byte has `bits` bits for it behind a prefix."""
    limit = (1 << bits) - 1
    if value < limit:
        return bytes((prefix | value,))
    coded = bytearray((prefix | limit,))
    value -= limit
    while value >= 0x80:
        coded.append(0x80 | value & 0x7F)
        value >>= 7
    coded.append(value)
    return bytes(coded)


def _text(value: bytes) -> bytes:
    return _number(0, 7, len(value)) + value


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\x00" + _text(name) + _text(value)


def _known(place: int, value: bytes) -> bytes:
    return _number(0, 4, place) + _text(value)


#: the headers of every answer
ANSWER_BLOCK = _STATUS_200 + _known(_NAME_CONTENT_TYPE, _CONTENT_TYPE)
#: what follows an answer where all went well
OK_BLOCK = _literal(b"grpc-status", b"0")


def status_block(code: int, text: str) -> bytes:
    """Return what follows an answer: how it went, and why."""
    if not code and not text:
        return OK_BLOCK
    block = _literal(b"grpc-status", b"%d" % code)
    return block + _literal(b"grpc-message", _percent_coded(text)) if text else block


def http_status_block(status: int) -> bytes:
    """Return the headers for somebody who does not speak gRPC."""
    return _known(_NAME_STATUS, b"%d" % status)


def _percent_coded(text: str) -> bytes:
    return b"".join(
        b"%c" % byte if 0x20 <= byte <= 0x7E and byte != 0x25 else b"%%%02X" % byte
        for byte in text.encode("utf-8", "surrogatepass")
    )
