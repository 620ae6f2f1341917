"""
DescribeGroups (15): versions 0-6.

* protocol and members' metadata are shown only while the group is stable
* a group that is not there is "Dead", without an error; from v6 on also 69 with a message
* v1: throttle time; v3: authorized operations (all that a group has; an authorizer says less)
* v4: group instance ids; v5: flexible; v6: error message

Read and written by hand: who watches a cluster asks for all groups at once, again and again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.authorized_operations import GROUP_OPERATIONS, NOT_ASKED, bit_field
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.writer import Writer

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.groups.exchange import DescribedGroup, DescribedMember
    from logstore.compat.kafka.registry import RawRequest

_OPERATIONS_FROM = 3
_INSTANCES_FROM = 4
_GROUP_NOT_FOUND_FROM = 6


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return groups as they stand."""
    del client
    version = request.version
    group_ids, has_operations = _read(request)
    writer = Writer(is_flexible=request.is_flexible)
    if version >= 1:
        writer.i32(0)
    writer.count(len(group_ids))
    kinds: dict[tuple[str, str, str], bytes] = {}
    for group_id in group_ids:
        group = broker.groups.describe(group_id)
        _write_error(writer, broker, group, version)
        writer.string(group_id.encode())
        kind = group.state.value, group.protocol_type, group.protocol_name
        texts = kinds.get(kind)
        if texts is None:
            texts = kinds[kind] = _encoded(kind, request)
        writer.raw(texts)
        writer.count(len(group.members))
        for member in group.members:
            _write_member(writer, member, version)
        if version >= _OPERATIONS_FROM:
            is_told = has_operations and _error_of(group, version) is ErrorCode.NONE
            writer.i32(bit_field(GROUP_OPERATIONS) if is_told else NOT_ASKED)
        writer.tags()
    writer.tags()
    return [writer.frame(request.correlation_id)]


def _read(request: RawRequest) -> tuple[list[str], bool]:
    """Return which groups are asked for, and whether for what may be done with them, too."""
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    group_ids = [reader.text().decode(errors="replace") for _ in range(reader.count())]
    has_operations = request.version >= _OPERATIONS_FROM and reader.i8() != 0
    reader.tags()
    return group_ids, has_operations


def _encoded(texts: tuple[str, ...], request: RawRequest) -> bytes:
    writer = Writer(is_flexible=request.is_flexible)
    for text in texts:
        writer.string(text.encode())
    return writer.body()


def _error_of(group: DescribedGroup, version: int) -> ErrorCode:
    is_missing = group.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if is_missing and version < _GROUP_NOT_FOUND_FROM else group.error_code


def _write_error(writer: Writer, broker: Broker, group: DescribedGroup, version: int) -> None:
    error = _error_of(group, version)
    writer.i16(error)
    if version < _GROUP_NOT_FOUND_FROM:
        return
    message: str | None = None
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        is_other = broker.groups.others.has(group.group_id)
        what = "is not a classic group" if is_other else "not found"
        message = f"Group {group.group_id} {what}."
    writer.string(None if message is None else message.encode())


def _write_member(writer: Writer, member: DescribedMember, version: int) -> None:
    writer.string(member.member_id.encode())
    if version >= _INSTANCES_FROM:
        instance_id = member.group_instance_id
        writer.string(None if instance_id is None else instance_id.encode())
    writer.string(member.client_id.encode())
    writer.string(member.client_host.encode())
    writer.data(member.metadata)
    writer.data(member.assignment)
    writer.tags()
