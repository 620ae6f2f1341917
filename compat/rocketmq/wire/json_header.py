"""
Headers as JSON objects: read as clients write them, written as Java writes them.

Java is liberal in what it reads: numbers and flags where text belongs, numbers as text, languages
that it never heard of, a new line at the end. All of that comes from real clients.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import orjson

from logstore.compat.rocketmq.wire.languages import language_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


#: code, opaque, flag, language, version, remark, ext fields
Header = tuple[int, int, int, str, int, str | None, dict[str, str]]

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def read_json_header(data: bytes | memoryview) -> Header:
    """
    Return what a JSON header says; what it does not say is 0, no text, no fields.

    Raises:
        ValueError: it is no JSON object, or a number in it is none.

    """
    try:
        header = orjson.loads(bytes(data))  # of other buffers it is slower than with the copy
    except ValueError:
        header = read_patiently(data)
    if header.__class__ is not dict:
        raise ValueError("the header is no JSON object")
    get: Callable[[str], Any] = header.get
    code, opaque, flag, version = get("code"), get("opaque"), get("flag"), get("version")
    try:
        bits = code | opaque | flag | version
        is_known = type(bits) is int  # objects can be united, too
    except TypeError:
        bits, is_known = 0, False
    if not is_known:
        code, opaque, flag, version = map(_number, (code, opaque, flag, version))
        bits = code | opaque | flag | version
    if not _INT_MIN <= bits <= _INT_MAX:
        raise ValueError("a number of the header has more than 32 bits")
    language = get("language")
    if language != "JAVA":
        language = language_of(language)
    fields: dict[str, str] = get("extFields")  # if it is what it should be
    if not fields:
        fields = {}
    elif type(fields) is not dict:
        raise ValueError("extFields is no JSON object")
    else:
        try:
            "".join(fields.values())  # the fastest way to ask whether all of them are text
        except TypeError:
            fields = _texts(fields)
    remark = get("remark")
    if remark is not None and type(remark) is not str:
        remark = _text(remark)
    return code, opaque, flag, language, version, remark, fields


def read_patiently(data: bytes | memoryview) -> Any:
    """
    Read what Java takes and orjson does not: bad UTF-8, raw control characters, half pairs.

    Halves of pairs that are written one by one (CESU-8) make whole ones, as in Java.

    Raises:
        ValueError: it is no JSON all the same.

    """
    try:
        halves = bytes(data).decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
        text = halves.decode("utf-16-le", "surrogatepass")
    except UnicodeDecodeError:
        text = bytes(data).decode(errors="replace")
    try:
        header = json.loads(text, strict=False)
    except RecursionError:
        raise ValueError("the header is nested too deeply") from None
    # A half of a surrogate pair cannot be written as UTF-8 later on.
    clean = json.dumps(header, ensure_ascii=False).encode("utf-8", "replace")
    return json.loads(clean)


def _number(value: object) -> int:
    """Return a number of a header, as text or as itself; 0 where there is none."""
    if value is None:
        return 0
    if isinstance(value, str | int):
        return int(value)
    raise ValueError(f"{value!r} is no number")


def _texts(fields: Mapping[str, object]) -> dict[str, str]:
    return {
        name: value if type(value) is str else str(value) if type(value) is int else _text(value)
        for name, value in fields.items()
        if value is not None
    }


def _text(value: object) -> str:
    """Return the text that Java's reader makes of a value of another kind."""
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


def write_json_header(
    code: int,
    opaque: int,
    flag: int,
    language: str,
    version: int,
    remark: str | None,
    fields: Mapping[str, str] | None,
) -> bytes:
    """Return a header with the keys in Java's order; null `fields` and `remark` are left out."""
    header: dict[str, Any] = {"code": code}
    if fields is not None:
        header["extFields"] = fields
    header["flag"] = flag
    header["language"] = language
    header["opaque"] = opaque
    if remark is not None:
        header["remark"] = remark
    header["serializeTypeCurrentRPC"] = "JSON"
    header["version"] = version
    try:
        return orjson.dumps(header)
    except TypeError:  # text with half a surrogate pair, which Java writes as a question mark
        return json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
