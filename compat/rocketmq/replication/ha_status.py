"""How replication goes, as ``mqadmin haStatus`` shows it (``HARuntimeInfo``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.wire.bodies import json_body

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

__all__ = ["ha_status"]


def ha_status(broker: Broker) -> bytes:
    """Return the body that tells it."""
    end = broker.store.commit_log.max_physical_offset
    if broker.settings.is_slave:
        return json_body(_table(haClientRuntimeInfo=_master_of(broker, end), master=False))
    master = broker.replication.master
    now_ms = broker.host.clock.monotonic_ms()
    slaves = [
        {
            "addr": one.address,
            "diff": end - one.slave_ack_offset,
            "inSync": master.is_in_sync(one, end),
            "slaveAckOffset": one.slave_ack_offset,
            "transferFromWhere": one.next_physical_offset,
            "transferredByteInSecond": one.flow.last_second_bytes(now_ms),
        }
        for one in master.connections
    ]
    return json_body(
        _table(
            haConnectionInfo=slaves,
            inSyncSlaveNums=sum(bool(slave["inSync"]) for slave in slaves),
            master=True,
            masterCommitLogMaxOffset=end,
        )
    )


def _table(**given: object) -> dict[str, Any]:
    """Return all fields, those that are not given as Java has them where there is nothing."""
    return {
        "haClientRuntimeInfo": {
            "lastReadTimestamp": 0,
            "lastWriteTimestamp": 0,
            "masterFlushOffset": 0,
            "maxOffset": 0,
            "transferredByteInSecond": 0,
        },
        "haConnectionInfo": [],
        "inSyncSlaveNums": 0,
        "masterCommitLogMaxOffset": 0,
        **given,
    }


def _master_of(broker: Broker, end: int) -> dict[str, Any]:
    follower = broker.follower
    found: dict[str, Any] = {
        "lastReadTimestamp": 0,
        "lastWriteTimestamp": 0,
        "masterFlushOffset": 0,
        "maxOffset": end,
        "transferredByteInSecond": 0,
    }
    if follower is not None and follower.address:
        found |= {
            "lastReadTimestamp": follower.last_read_ms,
            "lastWriteTimestamp": follower.last_write_ms,
            "masterAddr": follower.address,
            "transferredByteInSecond": follower.flow.last_second_bytes(
                broker.host.clock.monotonic_ms()
            ),
        }
    return found
