"""
The name in a client's certificate, written as Java does: ``CN=alice,OU=Tests,O=Example``.

A name is a sequence of sets of (type, value); RFC 2253 writes them the last one first. Kinds that
the RFC has no keyword for are written as their number and ``#`` with the value's bytes. Of a
certificate only as much is read as stands before its subject::

    Certificate ::= SEQUENCE { tbsCertificate SEQUENCE { [0] version OPTIONAL, serialNumber INTEGER,
        signature SEQUENCE, issuer SEQUENCE, validity SEQUENCE, subject SEQUENCE ... } ... }

Source: ``X500Principal.getName``, ``AVA.toRFC2253String``; X.690 for the encoding.
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.compat.kafka.security.der import SEQUENCE, DerError, Element, elements

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED = ',=+<>#;"\\'
_SET, _OBJECT_ID, _VERSION = 0x31, 0x06, 0xA0
#: tags of text; whichever it is, Java reads it as UTF-8
_TEXTS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)


def subject_of(certificate: bytes) -> str:
    """
    Return the subject of a certificate in DER.

    Raises:
        DerError: it is none.

    """
    (outer,) = _expect(certificate, SEQUENCE, count=1)
    parts = elements(next(_expect(outer.content, SEQUENCE)).content)
    first = next(parts, None)
    if first is not None and first.tag == _VERSION:
        next(parts, None)
    for _ in range(3):  # signature, issuer, validity
        next(parts, None)
    subject = next(parts, None)
    if subject is None or subject.tag != SEQUENCE:
        raise DerError("a certificate without a subject")
    names = [_relative_name(one) for one in elements(subject.content)]
    return ",".join(reversed(names))


def _relative_name(relative: Element) -> str:
    """Return one set of the name; of several values in one, all with ``+``."""
    found: list[str] = []
    for one in elements(relative.content):
        if one.tag != SEQUENCE:
            raise DerError("a name with a part that is no pair")
        pair = list(elements(one.content))
        if len(pair) != 2 or pair[0].tag != _OBJECT_ID:
            raise DerError("a name with a part that is no pair of type and value")
        number = _object_id(pair[0].content)
        keyword, value = _KEYWORDS.get(number), pair[1]
        if keyword is None or value.tag not in _TEXTS:
            found.append(f"{keyword or number}=#{value.whole.hex()}")
        else:
            found.append(f"{keyword}={_escaped(value.content.decode(errors='replace'))}")
    return "+".join(found)


def _escaped(text: str) -> str:
    """Return text as Java has it: with backslashes, also before spaces at its ends."""
    escaped = "".join(f"\\{sign}" if sign in _ESCAPED else sign for sign in text)
    escaped = escaped.replace("\0", "\\00")
    core = escaped.strip(" ")
    before = len(escaped) - len(escaped.lstrip(" "))
    behind = len(escaped) - before - len(core)
    return "\\ " * before + core + "\\ " * behind


def _object_id(content: bytes) -> str:
    if not content or content[-1] & 0x80:
        raise DerError("an object identifier that is cut short")
    numbers: list[int] = []
    value = 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - first * 40, *numbers[1:])))


def _expect(data: bytes, tag: int, count: int = 0) -> Iterator[Element]:
    """Yield elements, the first of which has this tag; exactly so many if told how many."""
    found = list(elements(data))
    if not found or found[0].tag != tag or (count and len(found) != count):
        raise DerError("these bytes are no certificate")
    return iter(found)
