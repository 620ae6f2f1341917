"""GET_BROKER_HA_STATUS tells how replication goes."""

from __future__ import annotations

from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.broker_peer import Peer
from tests.compat.rocketmq.replication.network import MASTER_HA, Pair

NO_CLIENT = {
    "lastReadTimestamp": 0,
    "lastWriteTimestamp": 0,
    "masterFlushOffset": 0,
    "maxOffset": 0,
    "transferredByteInSecond": 0,
}


def test_a_master_tells_of_its_slaves() -> None:
    """Address, place, distance and whether it keeps up, of each."""
    pair = Pair()
    client = Peer(pair.master)
    client.produce(b"x" * 1000)
    pair.connect()
    end = pair.master.store.commit_log.max_physical_offset
    pair.network.run(1000)
    found = client.ask(RequestCode.GET_BROKER_HA_STATUS).content
    assert found == {
        "haClientRuntimeInfo": NO_CLIENT,
        "haConnectionInfo": [
            {
                "addr": "127.0.0.1:50001",
                "diff": 0,
                "inSync": True,
                "slaveAckOffset": end,
                "transferFromWhere": end,
                "transferredByteInSecond": end + 12,
            }
        ],
        "inSyncSlaveNums": 1,
        "master": True,
        "masterCommitLogMaxOffset": end,
    }
    pair.network.cut()
    assert client.ask(RequestCode.GET_BROKER_HA_STATUS).content["haConnectionInfo"] == []


def test_a_slave_tells_of_its_master() -> None:
    """Whom it follows, how far it is, and when bytes came and went last."""
    pair = Pair()
    reader = Peer(pair.slave)
    before = reader.ask(RequestCode.GET_BROKER_HA_STATUS).content
    assert before["haClientRuntimeInfo"] == NO_CLIENT
    assert before["master"] is False
    Peer(pair.master).produce(b"x" * 1000)
    pair.connect()
    end = pair.slave.store.commit_log.max_physical_offset
    now_ms = pair.network.clock.wall_ms()
    pair.network.run(1000)
    assert reader.ask(RequestCode.GET_BROKER_HA_STATUS).content == {
        "haClientRuntimeInfo": {
            "lastReadTimestamp": now_ms,
            "lastWriteTimestamp": now_ms,
            "masterAddr": MASTER_HA,
            "masterFlushOffset": 0,
            "maxOffset": end,
            "transferredByteInSecond": end + 12,
        },
        "haConnectionInfo": [],
        "inSyncSlaveNums": 0,
        "master": False,
        "masterCommitLogMaxOffset": 0,
    }
