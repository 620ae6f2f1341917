"""What mqadmin asks of a broker's machinery: where it listens, cold data, engines, epochs."""

from __future__ import annotations

import json
from typing import cast

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.testing.manual_clock import ManualClock
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker
from tests.compat.rocketmq.test_pulling import heartbeat


@pytest.fixture
def peer() -> Peer:
    """Return a client of a fresh broker with the time wheel."""
    return Peer(a_broker(settings={"timerWheelEnable": "true", "traceTopicEnable": "true"}))


def settings_of(peer: Peer) -> dict[str, str]:
    """Return what the broker says of its settings."""
    lines = peer.ask(Code.GET_BROKER_CONFIG).body.decode().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_broker_tells_where_it_listens(peer: Peer) -> None:
    """The ports that it has got, not those that its settings would have."""
    peer.broker.advertised_host, peer.broker.advertised_port = "127.0.0.9", 12345
    peer.broker.ha_port = 12346
    told = settings_of(peer)
    assert (told["brokerIP1"], told["brokerIP2"]) == ("127.0.0.9", "127.0.0.9")
    assert (told["listenPort"], told["haListenPort"]) == ("12345", "12346")


def test_what_was_put_is_counted_without_the_brokers_own_topics(peer: Peer) -> None:
    """Traces and half messages are no messages of clients."""
    peer.produce(b"one")
    peer.produce(b"trace", topic="RMQ_SYS_TRACE_TOPIC")
    peer.broker.stats.count_pulled("g", TOPIC, 3, 30)
    peer.broker.stats.count_pulled("g", "RMQ_SYS_TRACE_TOPIC", 2, 20)
    table = peer.ask(Code.GET_BROKER_RUNTIME_INFO).content["table"]
    assert (table["msgPutTotalTodayNow"], table["msgGetTotalTodayNow"]) == ("1", "3")


def test_limits_of_cold_reads_are_kept_and_told(peer: Peer) -> None:
    """By group, as lines; what is no number is passed over."""
    set_code, remove, told = (
        Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
        Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
        Code.GET_COLD_DATA_FLOW_CTR_INFO,
    )
    assert peer.ask(set_code, body=b"g1=1000\ng2=many\ng3=3\n").code == ResponseCode.SUCCESS
    found = json.loads(peer.ask(told).body)
    assert found == {
        "runtimeTable": {}, "configTable": {"g1": 1000, "g3": 3},
        "cgColdReadThreshold": 3145728, "globalColdReadThreshold": 104857600, "globalAcc": 0,
    }  # fmt: skip
    assert next(iter(found)) == "runtimeTable"
    for group in (b"g1", b"none"):
        assert peer.ask(remove, body=group).code == ResponseCode.SUCCESS
    assert json.loads(peer.ask(told).body)["configTable"] == {"g3": 3}


@pytest.mark.parametrize(
    ("fields", "code", "remark"),
    [
        ({"READ_AHEAD_MODE": 1}, 0, "set commitlog readahead mode success, mode: 1"),
        ({"READ_AHEAD_MODE": 2}, 29, "set commitlog readahead mode param value error"),
        ({"READ_AHEAD_MODE": "x"}, 1, "set commitlog readahead mode failed"),
        ({"other": 1}, 1, "set commitlog readahead mode failed"),
        ({}, 1, "set commitlog readahead mode param error"),
    ],
)
def test_the_commit_log_is_read_ahead_or_not(
    peer: Peer, fields: dict[str, object], code: int, remark: str
) -> None:
    """What is wanted becomes a setting; what cannot be is refused."""
    answer = peer.ask(Code.SET_COMMITLOG_READ_MODE, fields)
    assert (answer.code, answer.remark) == (code, remark)
    assert settings_of(peer)["dataReadAheadEnable"] == ("true" if code else "false")


@pytest.mark.parametrize(
    ("fields", "code", "remark"),
    [
        ({"E_T": "F"}, 0, "switch timer engine success"),
        ({"E_T": "R"}, 29, "timerRocksDBEnable must be configured true when broker start"),
        ({"E_T": "X"}, 29, "param error"),
        ({}, 29, "param error, extFields is null"),
    ],
)
def test_the_time_wheel_is_the_only_engine(
    peer: Peer, fields: dict[str, object], code: int, remark: str
) -> None:
    """To stay with it is the only switch there is."""
    answer = peer.ask(Code.SWITCH_TIMER_ENGINE, fields)
    assert (answer.code, answer.remark) == (code, remark)
    assert settings_of(peer)["timerRocksDBStopScan"] == ("false" if code else "true")
    without = Peer(a_broker())
    assert without.ask(Code.SWITCH_TIMER_ENGINE, fields).remark == (
        "broker timerWheelEnable is false"
    )


def test_what_only_other_brokers_have_is_answered_as_by_one_without_it(peer: Peer) -> None:
    """No controller, so no epochs; no RocksDB, so nothing moved, compared or exported."""
    epochs = peer.ask(Code.GET_BROKER_EPOCH_CACHE)
    assert (epochs.code, epochs.remark) == (1, "this request only for controllerMode ")
    assert peer.ask(Code.POP_ROLLBACK).code == ResponseCode.SUCCESS
    reset = peer.ask(Code.RESET_MASTER_FLUSH_OFFSET, {"masterFlushOffset": 0})
    assert reset.code == ResponseCode.SUCCESS
    checked = peer.ask(Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, {"topic": TOPIC, "checkStoreTime": 0})
    assert (checked.code, checked.body) == (ResponseCode.SUCCESS, b'{"checkStatus":2}')


@pytest.mark.parametrize(
    ("tables", "code", "remark"),
    [
        ("topics;subscriptionGroups;consumerOffsets;", 0, "export done."),
        (" TOPICS ", 0, "export done."),
        ("", 0, "export done."),
        ("topics;x", 1, "Unknown config type: x"),
        (None, 1, "the custom field <configType> is null"),
    ],
)
def test_tables_are_where_they_would_be_exported_to(
    peer: Peer, tables: str | None, code: int, remark: str
) -> None:
    """They are the files in JSON, so that it is done as soon as it is asked for."""
    answer = peer.ask(Code.EXPORT_ROCKSDB_CONFIG_TO_JSON, as_fields(configType=tables))
    assert (answer.code, answer.remark) == (code, remark)


@pytest.mark.parametrize("expression", ["*", "a > 1"])
def test_units_of_a_queue_come_with_the_filter_of_the_group(expression: str) -> None:
    """As a text for people to read: null, but for a group that filters by SQL."""
    peer = Peer(a_broker(settings={"enablePropertyFilter": "true"}))
    peer.produce(b"one")
    kind = "TAG" if expression == "*" else "SQL92"
    beat = heartbeat(TOPIC, subString=expression, expressionType=kind)
    peer.ask(Code.HEART_BEAT, body=beat)
    fields = {"topic": TOPIC, "queueId": 0, "index": 0, "count": 1, "consumerGroup": "g"}
    told = peer.ask(Code.QUERY_CONSUME_QUEUE, fields).content["filterData"]
    found = json.loads(told)
    assert (found and found["expression"]) == (None if kind == "TAG" else expression)
    assert told.startswith("null" if kind == "TAG" else '{\n\t"')


def test_units_with_an_extension_are_told_as_java_tells_them() -> None:
    """With what stands in the extension, bits in lines, and whether the group would get them."""
    settings = {
        "enablePropertyFilter": "true", "enableConsumeQueueExt": "true",
        "enableCalcFilterBitMap": "true",
    }  # fmt: skip
    peer = Peer(a_broker(settings=settings))
    peer.produce(b"before", properties="a\x012\x02")
    beat = heartbeat(TOPIC, subString="a = '1'", expressionType="SQL92")
    peer.ask(Code.HEART_BEAT, body=beat)
    cast("ManualClock", peer.broker.host.clock).advance(1_000)
    for value in "12":
        peer.produce(b"after", properties=f"a\x01{value}\x02")
    fields = {"topic": TOPIC, "queueId": 0, "index": 0, "count": 3, "consumerGroup": "g"}
    told = peer.ask(Code.QUERY_CONSUME_QUEUE, fields).content
    before, hit, missed = told["queueData"]
    assert (before["eval"], hit["eval"], missed["eval"]) == (True, True, False)
    assert "bitMap" not in before
    assert list(json.loads(before["extendDataJson"])) == ["msgStoreTime", "size", "tagsCode"]
    kept = json.loads(hit["extendDataJson"])
    assert (kept["size"], len(kept["filterBitMap"])) == (34, 14)
    lines = hit["bitMap"].split("\n")
    assert [len(line) for line in lines] == [48, 64, 0]
    numbers = bytes(number & 0xFF for number in reversed(kept["filterBitMap"]))
    assert "".join(lines) == f"{int.from_bytes(numbers, 'big'):0112b}"
    assert "1" not in missed["bitMap"]
    positions = json.loads(told["filterData"])["bloomFilterData"]["bitPos"]
    assert json.dumps(positions, separators=(",", ":")) in told["filterData"]
    assert "eval" in told["queueData"][0]


def test_versions_of_offsets_go_on_as_settings_say() -> None:
    """Every so many commits; slaves ask for offsets again then."""
    peer = Peer(a_broker(settings={"consumerOffsetUpdateVersionStep": "2"}))
    peer.produce()
    peer.pull()

    def counted_after(commits: int) -> int:
        for _ in range(commits):
            fields = {"consumerGroup": "g", "topic": TOPIC, "queueId": 0, "commitOffset": 1}
            assert peer.ask(Code.UPDATE_CONSUMER_OFFSET, fields).code == 0
        body = bytes(peer.ask(Code.GET_ALL_CONSUMER_OFFSET).body)
        return int(body.partition(b'"counter":')[2].partition(b",")[0])

    first = counted_after(0)
    assert counted_after(4) == first + 2
    peer.broker.update_settings({"consumerOffsetUpdateVersionStep": "1"})
    assert counted_after(3) == first + 5


def test_filters_of_groups_that_are_gone_are_kept_as_long_as_settings_say() -> None:
    """A day by itself."""
    broker = a_broker(settings={"filterDataCleanTimeSpan": "1000"})
    assert broker.store.consumer_filters.clean_span_ms == 1000
    broker.update_settings({"filterDataCleanTimeSpan": "2000"})
    assert broker.store.consumer_filters.clean_span_ms == 2000
    assert a_broker().store.consumer_filters.clean_span_ms == 86_400_000
