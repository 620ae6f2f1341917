"""Bearer tokens that nobody has signed: claims of any type, what is nearly JSON or base64."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from tests.interop.drawn.world import World

#: a claim that is not there
MISSING = object()
HEADERS: tuple[Any, ...] = (
    *[{"alg": "none"}] * 12, {"alg": "none", "typ": "JWT"}, {}, {"alg": "NONE"}, {"alg": None},
    {"alg": ["none"]}, {"alg": True}, {"alg": {"a": "none"}}, {"alg": ""}, [], [{"alg": "none"}],
    "none", 5, None,
)  # fmt: skip
SUBJECTS: tuple[Any, ...] = (
    *["alice"] * 8, "bob", "", " ", "\u00a0", "\1", " alice ", "\u00fc", 7, 1.5, True, None, [],
    ["alice"], {}, {"a": "alice"}, MISSING,
)  # fmt: skip
SCOPES: tuple[Any, ...] = (
    *[MISSING] * 8, "a", " ", "a b", ["a", "b"], [1, None], [], 5, 1.5, True, None, {"a": "b"},
    [["a"]], [{}],
)  # fmt: skip
#: seconds from now; anything else stands as it is
ENDS: tuple[Any, ...] = (
    *[1000] * 10, 1000.25, -10, 9_000_000_000, 9_300_000_000, 1e14, "soon", "1e18", True, None,
    [5], {}, MISSING, 1e300, -1e300, 0,
)  # fmt: skip
BEGINNINGS: tuple[Any, ...] = (
    *[MISSING] * 6, -10, -10.5, 2000, 5000, "x", None, True, 1e300, -1e300, [1], {},
)  # fmt: skip
#: what stands before the claims' JSON, after it, or in its place
TEXTS = (
    *["%s"] * 14, " %s ", "%s}", "%s x", "%s{}", "\ufeff%s", "// x\n%s", "", "null", "[%s]",
    "[1,2]", "5", "{}", "[]",
)  # fmt: skip
SCHEMES = (*["Bearer "] * 10, "bearer ", "BEARER  ", "Bearer", "Basic ", " Bearer ", "\u00fc ")
BEGIN = (*["n,,"] * 10, "n,a=alice,", "n,a=bob,", "n,a=,", "y,,", "n,", "", "n,a=al=2Cice,")
PAIRS = (
    *[""] * 10, "k=v\1", "k=v=w\1k=x\1", "k=\1", "k1=v\1", "=v\1", "auth=Bearer x\1",
    "k=a b\tc\r\n\1", "k=\u00fc\1", "k\1",
)  # fmt: skip
WHOLE = (
    b"", b"\1", b"n,,\1\1", b"\xff\xfe", b"n,,\1auth=Bearer ..\1\1",
    b"n,,\1auth=Bearer .a.\1\1",
)  # fmt: skip
#: where header and claims stand
FORMS = (*["{}.{}."] * 16, "{}.{}.c2ln", "{}.{}", "{}.{}..", ".{}.{}", "{}.{}.=", "{}{}")


def message(world: World) -> bytes:
    """Draw what a client sends."""
    if world.likely(0.06):
        return bytes(world.pick(*WHOLE))
    auth = f"auth={world.pick(*SCHEMES)}{token(world)}\1"
    pairs = world.pick(*PAIRS)
    words = f"{auth}{pairs}" if world.likely(0.6) else f"{pairs}{auth}"
    ending = world.pick(*["\1"] * 12, "", "\1\1", "x")
    return f"{world.pick(*BEGIN)}\1{words}{ending}".encode()


def token(world: World) -> str:
    """Draw a token."""
    claims: dict[str, Any] = {
        "sub": world.pick(*SUBJECTS),
        "exp": _time(world.pick(*ENDS)),
        "iat": _time(world.pick(*BEGINNINGS)),
        "scope": world.pick(*SCOPES),
    }
    claims = {key: value for key, value in claims.items() if value is not MISSING}
    told = json.dumps(claims, ensure_ascii=world.likely(0.5))
    text = world.pick(*TEXTS).replace("%s", told)
    if world.likely(0.04):
        text = text.replace('"sub"', '"sub": "bob", "sub"', 1)
    if world.likely(0.04):
        text = text.replace('"exp":', world.pick('"exp": 0', '"exp": +', '"exp": NaN, "x":'), 1)
    encoding = world.pick(*["utf-8"] * 20, "utf-16-be", "utf-16", "latin-1")
    header = base64_of(world, json.dumps(world.pick(*HEADERS)).encode())
    body = base64_of(world, text.encode(encoding, "replace"))
    return str(world.pick(*FORMS).format(header, body))


def base64_of(world: World, data: bytes) -> str:
    """Encode a part of a token, now and then not quite as it has to be."""
    text = base64.urlsafe_b64encode(data).decode().rstrip("=")
    if world.likely(0.05):
        text += world.pick("A", "AA", "~", "+", "/", "-", "_")
    if world.likely(0.03):
        text = text.replace("-", "+").replace("_", "/")
    return text


def _time(drawn: Any) -> Any:
    if isinstance(drawn, bool) or not isinstance(drawn, (int, float)) or abs(drawn) > 1e200:
        return drawn
    return int(time.time()) + drawn
