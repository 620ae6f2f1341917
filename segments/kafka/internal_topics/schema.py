"""
A message's class is its schema: each annotation says how the field stands on the wire.

::

    @attrs.frozen(kw_only=True)
    class OffsetCommitValue(Message):
        VERSIONS = range(5)
        FLEXIBLE_FROM = 4

        offset: Int64
        leader_epoch: Annotated[Int32, Held(3, is_ignorable=True)] = -1
        topic_id: Annotated[uuid.UUID, Held(4, tag=0, is_ignorable=True)] = NO_ID

Numbers name their width; ``str``, ``bytes`` and ``uuid.UUID`` speak for themselves;
``tuple[X, ...]`` is an array, a class of this kind a structure, ``| None`` may be null.
:class:`Held` narrows the versions that have the field. The order is that of the wire.

Source: Kafka's message schemas, ``common/message/*.json``.
"""

from __future__ import annotations

import enum
import struct
import types
import typing
import uuid
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

import attrs

NO_ID = uuid.UUID(int=0)


class Width(enum.Enum):
    """How many bytes an integer has, and whether it is signed; big-endian."""

    INT8 = struct.Struct(">b")
    INT16 = struct.Struct(">h")
    UINT16 = struct.Struct(">H")
    INT32 = struct.Struct(">i")
    INT64 = struct.Struct(">q")


Int8 = Annotated[int, Width.INT8]
Int16 = Annotated[int, Width.INT16]
UInt16 = Annotated[int, Width.UINT16]
Int32 = Annotated[int, Width.INT32]
Int64 = Annotated[int, Width.INT64]


@attrs.frozen
class Held:
    """
    The versions that have a field, as a tagged one if `tag` is given.

    A value other than the default does not fit a version without the field; `is_ignorable` says
    that it may get lost then.
    """

    since: int = 0
    until: int = 0x7FFF
    tag: int | None = None
    is_ignorable: bool = False

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.since <= version <= self.until


@attrs.frozen(kw_only=True)
class Message:
    """A message, or a structure in one; tagged fields that nobody here knows are kept."""

    VERSIONS: ClassVar[range] = range(1)
    #: the first version in the flexible encoding, None if there is none (of a message)
    FLEXIBLE_FROM: ClassVar[int | None] = None

    unknown_tags: tuple[tuple[int, bytes], ...] = ()

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Tell whether `version` has compact lengths and tagged fields."""
        return cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM


MessageT = TypeVar("MessageT", bound=Message)


@attrs.frozen
class ArrayOf:
    """Many of the same."""

    element: WireType


WireType: TypeAlias = Width | type[str] | type[bytes] | type[uuid.UUID] | ArrayOf | type[Message]


@attrs.frozen
class Field:
    """One field: its name here and in Kafka's schema, how and in which versions it stands there."""

    name: str
    java_name: str
    type: WireType
    is_nullable: bool
    held: Held
    make_default: Callable[[], Any]


_fields: dict[type[Message], tuple[Field, ...]] = {}


def fields_of(kind: type[Message]) -> tuple[Field, ...]:
    """Return the fields of a message or structure in the order of the wire."""
    found = _fields.get(kind)
    if found is None:
        found = _fields[kind] = _derived_fields(kind)
    return found


def _derived_fields(kind: type[Message]) -> tuple[Field, ...]:
    hints = typing.get_type_hints(kind, include_extras=True)
    defaults: dict[str, Any] = {part.name: part.default for part in attrs.fields(kind)}
    return tuple(
        _field(name, hint, defaults[name])
        for name, hint in hints.items()
        if name in defaults and name != "unknown_tags"
    )


def _field(name: str, hint: Any, default: Any) -> Field:
    held = Held()
    if typing.get_origin(hint) is Annotated:
        inner, *marks = typing.get_args(hint)
        held = next((mark for mark in marks if isinstance(mark, Held)), held)
        widths = [mark for mark in marks if isinstance(mark, Width)]
        hint = Annotated[inner, widths[0]] if widths else inner
    is_nullable = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
        is_nullable = True
    wire = _wire_type(hint)
    fallback = _default_of(wire) if default is attrs.NOTHING else _constant(default)
    return Field(name, java_name(name), wire, is_nullable, held, fallback)


def _wire_type(hint: Any) -> WireType:
    if typing.get_origin(hint) is Annotated:
        width = typing.get_args(hint)[1]
        assert isinstance(width, Width), f"{hint} has a width"
        return width
    if typing.get_origin(hint) is tuple:
        return ArrayOf(_wire_type(typing.get_args(hint)[0]))
    assert hint in (str, bytes, uuid.UUID) or issubclass(hint, Message), f"{hint} has no wire form"
    wire: WireType = hint
    return wire


def _default_of(wire: WireType) -> Callable[[], Any]:
    if isinstance(wire, Width):
        return int
    if isinstance(wire, ArrayOf):
        return tuple
    if wire is uuid.UUID:
        return _constant(NO_ID)
    if issubclass(wire, Message):
        return lambda: empty(wire)
    return wire


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def empty(kind: type[MessageT]) -> MessageT:
    """Return a structure whose fields all have their default (Java's ``new Kind()``)."""
    return kind(**{field.name: field.make_default() for field in fields_of(kind)})


def java_name(name: str) -> str:
    """Return ``transactionalId`` for ``transactional_id``."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
