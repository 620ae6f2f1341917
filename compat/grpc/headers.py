"""
Headers of calls and of their answers (HPACK).

What a client says is decoded by a library. What we answer is the same nearly always, and written
without the table that a peer would have to keep of it: a literal costs some bytes, and no thought.

Source: RFC 7541; "gRPC over HTTP2" for what they mean.
"""

from __future__ import annotations

from typing import Any

import hpack

from logstore.compat.grpc.frames import ErrorCode, Http2Error

HEADER_BYTES_MAX = 64 * 1024
_CONTENT_TYPE = b"application/grpc"
#: places in the table that everybody has
_STATUS_200, _NAME_STATUS, _NAME_CONTENT_TYPE = b"\x88", 8, 31
_MS_BY_UNIT = {"H": 3_600_000.0, "M": 60_000.0, "S": 1000.0, "m": 1.0, "u": 0.001, "n": 0.000_001}
_TIMEOUT_DIGITS_MAX = 8


class HeaderReader:
    """Reads the header blocks of one connection, which depend on each other."""

    def __init__(self) -> None:
        self._decoder: Any = hpack.Decoder(max_header_list_size=HEADER_BYTES_MAX)

    def read(self, block: bytes) -> dict[str, str]:
        """
        Return the headers of a block; of those that stand there twice, all, by commas.

        Raises:
            Http2Error: it is no block, or too long: the ones after it cannot be read either.

        """
        try:
            found = self._decoder.decode(block, raw=True)
        except hpack.OversizedHeaderListError as error:
            text = f"headers above {HEADER_BYTES_MAX} bytes"
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, text) from error
        except hpack.HPACKError as error:
            raise Http2Error(ErrorCode.COMPRESSION_ERROR, f"no headers: {error}") from error
        headers: dict[str, str] = {}
        for name_bytes, value_bytes in found:
            name, value = name_bytes.decode("latin-1"), value_bytes.decode("utf-8", "replace")
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        return headers


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
