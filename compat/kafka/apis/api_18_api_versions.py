"""
ApiVersions (18): versions 0-4. What every client asks first.

* lists the registry, and so exactly what is dispatched; Produce from 0 on (KAFKA-18659); or what
  a release served that is emulated
* the response header is always version 0, so that a client can read it before it knows anything
* a version of the future is answered in version 0 with 35 and this API's own range (KIP-511);
  without the range where a release before 2.4 is emulated, and not at all before 0.10
* v1: throttle time
* v3: flexible; the client's software name and version, 42 if they are not well-formed; features
* v4: features may have the minimum level 0; in v3, whose readers refuse that, those are left out

Read and written by hand: it stands before the first record of every connection.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.features import NEW_IN_4_0, SHARE_VERSION, features_of, in_force
from logstore.compat.kafka.framing import MalformedRequestError, Reader, framed
from logstore.compat.kafka.registry import APIS, RawRequest
from logstore.compat.kafka.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_KEY = 18
_FLEXIBLE_FROM = 3
_FIRST_WITH_LEVEL_0 = 4
#: the release that first told its own range with the refusal
_FIRST_WITH_RANGE = (2, 4)
_SOFTWARE = re.compile(rb"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
#: what a member of a share group needs: ShareGroupHeartbeat, ShareFetch, ShareAcknowledge
_SHARE_APIS = frozenset({76, 78, 79})
_TAG_SUPPORTED, _TAG_EPOCH, _TAG_FINALIZED = 0, 1, 2


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Tell what is served."""
    error = ErrorCode.NONE
    if request.version >= _FLEXIBLE_FROM:
        reader = Reader(request.data, request.position, is_flexible=True)
        name, version = reader.string(), reader.string()
        reader.tags()
        if name is None or version is None:
            raise MalformedRequestError("the client's software name or version is null")
        if _SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version):
            client.software = f"{name.decode()} {version.decode()}"
        else:
            error = ErrorCode.INVALID_REQUEST
    if error is ErrorCode.NONE and client.authentication is not None:
        client.authentication.versions_told()
    body = _body(broker, request.version, error)
    return [framed(request.correlation_id, body, has_tags=False)]


def unsupported(broker: Broker, correlation_id: int) -> bytes | None:
    """Return the answer to a version that is not served, in version 0; None where there is none."""
    own_range = _ranges(broker).get(_KEY)
    if own_range is None:
        return None
    emulation = broker.emulation
    tells_range = emulation is None or emulation.release >= _FIRST_WITH_RANGE
    writer = Writer(is_flexible=False)
    writer.i16(ErrorCode.UNSUPPORTED_VERSION)
    _write_ranges(writer, {_KEY: own_range} if tells_range else {})
    return writer.frame(correlation_id)


def refused(correlation_id: int, error: ErrorCode) -> bytes:
    """Return an answer of version 0 that tells of an error alone."""
    writer = Writer(is_flexible=False)
    writer.i16(error)
    _write_ranges(writer, {})
    return writer.frame(correlation_id)


def _body(broker: Broker, version: int, error: ErrorCode) -> bytes:
    """Return the response without its header; with an error it lists nothing, as in Kafka."""
    writer = Writer(is_flexible=version >= _FLEXIBLE_FROM)
    is_good = error is ErrorCode.NONE
    writer.i16(error)
    _write_ranges(writer, _ranges(broker) if is_good else {})
    if version >= 1:
        writer.i32(0)
    writer.tags(_features(broker, version) if is_good else None)
    return writer.body()


def _ranges(broker: Broker) -> Mapping[int, tuple[int, int]]:
    """Return the lowest and highest version by API, in the order of the keys."""
    if broker.emulation is not None:
        return broker.emulation.ranges
    return {key: (APIS[key].advertised_min, APIS[key].version_max) for key in sorted(APIS)}


def _write_ranges(writer: Writer, ranges: Mapping[int, tuple[int, int]]) -> None:
    writer.count(len(ranges))
    for key, (lowest, highest) in ranges.items():
        writer.i16(key)
        writer.i16(lowest)
        writer.i16(highest)
        writer.tags()


def _features(broker: Broker, version: int) -> dict[int, bytes]:
    """Return the tagged fields: what is supported, which levels are in force, since when."""
    features = features_of(broker.store.metadata.image.features)
    if broker.emulation is not None and not broker.emulation.has_features_of_4_0:
        features = [one for one in features if one.name not in NEW_IN_4_0]
    if not _ranges(broker).keys() >= _SHARE_APIS:
        features = [one for one in features if one.name != SHARE_VERSION]
    told = [one for one in features if one.level_min > 0 or version >= _FIRST_WITH_LEVEL_0]
    supported = Writer(is_flexible=True)
    supported.count(len(told))
    levels = in_force(features)
    finalized = Writer(is_flexible=True)
    finalized.count(len(levels))
    for feature in told:
        supported.string(feature.name.encode())
        supported.i16(feature.level_min)
        supported.i16(feature.level_max)
        supported.tags()
    for feature in levels:
        finalized.string(feature.name.encode())
        finalized.i16(feature.level)
        finalized.i16(feature.level)
        finalized.tags()
    epoch = Writer(is_flexible=True)
    epoch.i64(broker.store.metadata.features_epoch)
    return {
        _TAG_SUPPORTED: supported.body(),
        _TAG_EPOCH: epoch.body(),
        _TAG_FINALIZED: finalized.body(),
    }
