"""What the tables do beside being read and written: the rules of Java's managers."""

from __future__ import annotations

from functools import partial

import attrs

from logstore.host import read_file
from logstore.segments.rocketmq.tables.consumer_filters import ConsumerFilter, ConsumerFilterTable
from logstore.segments.rocketmq.tables.consumer_offsets import (
    ConsumerOffsetTable,
    LightConsumerOffsetTable,
)
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.delay_offsets import DelayOffsetTable
from logstore.segments.rocketmq.tables.message_request_modes import (
    POP,
    MessageRequestMode,
    MessageRequestModeTable,
)
from logstore.segments.rocketmq.tables.subscription_groups import (
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
)
from logstore.segments.rocketmq.tables.topics import PERM_INHERIT, TopicConfig, TopicTable
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost

CONFIG = "/store/config"
NOW_MS = 1_795_233_000_000


def world() -> SimulatedHost:
    """Return a world at a fixed time."""
    return SimulatedHost(clock=ManualClock(NOW_MS))


def offsets_of(host: SimulatedHost | None = None) -> ConsumerOffsetTable:
    """Return a table with offsets of two groups in two topics."""
    table = ConsumerOffsetTable(host or world(), CONFIG)
    for topic, group, queue_id, queue_offset in (
        ("t1", "g1", 0, 10),
        ("t1", "g1", 1, 20),
        ("t1", "g2", 0, 5),
        ("t2", "g1", 0, 7),
        ("odd", "a@b", 0, 1),
    ):
        table.commit(group, topic, queue_id, queue_offset)
    return table


def test_committed_offsets_are_found_by_topic_group_and_queue() -> None:
    """A committed offset is found, also a lower one later; others are -1."""
    table = offsets_of()
    assert table.query("g1", "t1", 1) == 20
    assert table.commit("g1", "t1", 1, 3) == 20
    assert table.query("g1", "t1", 1) == 3
    assert table.query("g1", "t1", 9) == -1
    assert table.query("nobody", "t1", 0) == -1
    assert table.commit("new", "t1", 0, 1) is None


def test_groups_and_topics_are_found_by_each_other() -> None:
    """Keys of just a topic and a group count; one with a second @ belongs to nobody."""
    table = offsets_of()
    assert table.topics_of("g1") == {"t1", "t2"}
    assert table.groups_of("t1") == {"g1", "g2"}
    assert table.groups_of("odd") == set()
    assert table.min_offsets("t1") == {0: 5, 1: 20}


def test_removed_groups_and_topics_are_forgotten() -> None:
    """Removing forgets committed, pulled and reset offsets of just that group or topic."""
    table = offsets_of()
    table.commit_pull("g1", "t1", 0, 30)
    table.assign_reset("t2", "g1", 0, 1)
    assert table.remove_group("g1")
    assert not table.remove_group("g1")
    assert table.of_group("g1", "t1") is None
    assert table.query_pull("g1", "t1", 0) == -1
    assert not table.has_reset("t2", "g1", 0)
    assert table.of_group("g2", "t1") == {0: 5}
    assert table.remove_topic("t1")
    assert table.groups_of("t1") == set()


def test_pulled_offsets_stand_beside_committed_ones() -> None:
    """Where a group pulled last is told; without that the committed offset is."""
    table = offsets_of()
    assert table.query_pull("g1", "t1", 0) == 10
    table.commit_pull("g1", "t1", 0, 15)
    assert table.query_pull("g1", "t1", 0) == 15
    assert table.query("g1", "t1", 0) == 10
    table.clear_pull("g1", "t1")
    assert table.query_pull("g1", "t1", 0) == 10


def test_where_groups_pulled_is_not_known_after_a_start() -> None:
    """It is written, and not read when a broker starts: the committed offset is told again."""
    host = world()
    table = offsets_of(host)
    table.commit_pull("g1", "t1", 0, 15)
    table.persist()
    again = ConsumerOffsetTable(host, CONFIG)
    assert again.load()
    assert again.query_pull("g1", "t1", 0) == 10
    again.decode(table.encoded(is_pretty=False))
    assert again.query_pull("g1", "t1", 0) == 15


def test_the_version_of_light_offsets_counts_anew_at_a_start() -> None:
    """That of other offsets goes on where it was."""
    host = world()
    for kind, count in ((ConsumerOffsetTable, 2), (LightConsumerOffsetTable, 0)):
        table = kind(host, CONFIG, version_step=1)
        table.commit("g1", "t1", 0, 1)
        table.commit("g1", "t1", 0, 2)
        table.persist()
        again = kind(host, CONFIG)
        assert again.load()
        assert (again.query("g1", "t1", 0), again.data_version.counter) == (2, count)


def test_a_reset_answers_until_it_is_taken() -> None:
    """A reset on the server answers queries in place of later commits, until a pull takes it."""
    table = offsets_of()
    table.assign_reset("t1", "g1", 0, 2)
    table.commit("g1", "t1", 0, 11)
    assert table.query("g1", "t1", 0) == 2
    assert table.take_reset("t1", "g1", 0) == 2
    assert table.take_reset("t1", "g1", 0) is None
    assert table.query("g1", "t1", 0) == 11
    table.assign_reset("t1", "g1", 0, -1)
    table.assign_reset("", "g1", 0, 1)
    assert not table.has_reset("t1", "g1", 0)


def test_a_cloned_group_has_offsets_of_its_own() -> None:
    """A clone has the source's offsets and changes alone; a group without any clones nothing."""
    table = offsets_of()
    table.clone("g1", "copy", "t1")
    table.commit("copy", "t1", 0, 99)
    assert table.of_group("copy", "t1") == {0: 99, 1: 20}
    assert table.query("g1", "t1", 0) == 10
    table.clone("nobody", "g2", "t1")
    assert table.of_group("g2", "t1") == {0: 5}


def test_the_version_of_offsets_goes_on_by_steps() -> None:
    """Every so many commits the version goes on, with the time of that commit."""
    host = world()
    table = ConsumerOffsetTable(host, CONFIG, version_step=3)
    delays = DelayOffsetTable(host, CONFIG, version_step=3)
    for number in range(7):
        host.clock.advance(1000)
        table.commit("g", "t", 0, number)
        delays.put(1, number)
    expected = DataVersion(NOW_MS + 6000, 2)
    assert table.data_version == expected
    assert delays.data_version == expected


def test_light_groups_have_one_offset_a_topic() -> None:
    """A group %LMQ% has one offset whatever the queue, and a table and a file of its own."""
    table = LightConsumerOffsetTable(world(), CONFIG)
    group = "%LMQ%1"
    assert table.commit(group, "t", 3, 5) is None
    assert table.commit("plain", "t", 3, 6) is None
    assert table.query(group, "t", 0) == 5
    assert table.of_group(group, "t") == {0: 5}
    assert table.of_group("%LMQ%2", "t") == {}
    assert table.query("plain", "t", 0) == -1
    content = table.to_json()
    assert content["lmqOffsetTable"] == {"t@%LMQ%1": 5}
    assert content["offsetTable"] == {"t@plain": {3: 6}}
    again = LightConsumerOffsetTable(world(), CONFIG)
    again.decode(table.encoded())
    assert again.query(group, "t", 0) == 5
    assert again.remove_group(group)
    assert again.query(group, "t", 0) == -1
    assert again.file_name == "lmqConsumerOffset.json"


def test_changes_of_topics_and_groups_are_counted() -> None:
    """Each change gives the table a new version; a starting broker's own topics do not."""
    host = world()
    topics = TopicTable(host, CONFIG)
    groups = SubscriptionGroupTable(host, CONFIG)
    topics.put_system(TopicConfig("TBW102", perm=7))
    groups.put_system(SubscriptionGroupConfig("TOOLS_CONSUMER"))
    assert (topics.data_version.counter, groups.data_version.counter) == (0, 0)
    host.clock.advance(5)
    topics.put(TopicConfig("t"))
    groups.put(SubscriptionGroupConfig("g"))
    assert topics.remove("t") == TopicConfig("t")
    assert topics.remove("t") is None
    assert groups.remove("g") == SubscriptionGroupConfig("g")
    assert topics.data_version == DataVersion(NOW_MS + 5, 2)
    assert groups.data_version == DataVersion(NOW_MS + 5, 2)
    system = topics.get("TBW102")
    assert system is not None
    assert system.is_inherited
    assert system.is_readable
    assert system.is_writable
    assert not TopicConfig("t").is_inherited
    assert PERM_INHERIT == 1


def test_what_is_closed_to_a_group_is_a_mask() -> None:
    """The mask of a topic is kept by group; as in Java, taking one away opens all of the group."""
    table = SubscriptionGroupTable(world(), CONFIG)
    table.set_forbidden("g", "t1", 1)
    table.set_forbidden("g", "t2", 3)
    assert table.forbidden_of("g", "t2") == 3
    again = SubscriptionGroupTable(world(), CONFIG)
    again.decode(table.encoded(is_pretty=True))
    assert again.forbidden == {"g": {"t1": 1, "t2": 3}}
    again.set_forbidden("g", "t1", 0)
    assert again.forbidden_of("g", "t2") == 0


FILTER = ConsumerFilter("t", "g", "a > 1", "SQL92", NOW_MS, client_version=10)


def test_a_newer_subscription_replaces_a_filter() -> None:
    """An older version is passed over, the same one wakes a dead filter, a newer one replaces."""
    table = ConsumerFilterTable(world(), CONFIG)
    assert table.register(FILTER)
    assert not table.register(attrs.evolve(FILTER, expression="a > 2", client_version=9))
    assert not table.register(FILTER)
    table.unregister("g")
    found = table.get("t", "g")
    assert found is not None
    assert found.is_dead
    assert table.register(FILTER)
    assert table.get("t", "g") == FILTER
    newer = attrs.evolve(FILTER, client_version=11, born_time_ms=NOW_MS + 7)
    assert table.register(newer)
    kept = table.get("t", "g")
    assert kept == attrs.evolve(FILTER, client_version=11)  # nothing else changed: still that one
    other = attrs.evolve(newer, expression="b = 1", client_version=12)
    assert table.register(other)
    assert table.of_topic("t") == table.of_group("g") == [other]
    table.forget("t", "g")
    assert table.get("t", "g") is None


def test_dead_filters_go_after_a_day() -> None:
    """A filter that died a day ago is not written any more, nor is a topic without filters."""
    host = world()
    table = ConsumerFilterTable(host, CONFIG)
    table.register(FILTER)
    table.unregister("g", but_topics=frozenset({"t"}))
    assert table.to_json()["filterDataByTopic"]["t"]["groupFilterData"]["g"]["dead"] is False
    table.unregister("g")
    host.clock.advance(24 * 3600 * 1000 - 1)
    assert "t" in table.to_json()["filterDataByTopic"]
    host.clock.advance(1)
    assert table.to_json()["filterDataByTopic"] == {}


def test_filters_die_at_a_restart() -> None:
    """A filter that was alive when the broker stopped is dead for 30 s when it is loaded."""
    host = world()
    table = ConsumerFilterTable(host, CONFIG)
    table.register(attrs.evolve(FILTER, born_time_ms=NOW_MS - 60_000))
    again = ConsumerFilterTable(host, CONFIG)
    again.decode(table.encoded(is_pretty=True))
    found = again.get("t", "g")
    assert found is not None
    assert found.dead_time_ms == NOW_MS - 30_000
    young = ConsumerFilterTable(host, CONFIG)
    table.register(attrs.evolve(FILTER, expression="c", client_version=11))
    young.decode(table.encoded(is_pretty=True))
    found = young.get("t", "g")
    assert found is not None
    assert found.dead_time_ms == NOW_MS


def has_bits(bit_count: int, one: ConsumerFilter) -> bool:
    """Tell whether a filter's bits are those of a bloom filter of this size."""
    return one.bloom_bit_count == bit_count


def test_filters_of_another_bloom_filter_are_ignored() -> None:
    """If the bits of one filter are not today's, the whole file is ignored, as in Java."""
    host = world()
    table = ConsumerFilterTable(host, CONFIG)
    bits = attrs.evolve(FILTER, bloom_bit_count=112, bloom_positions=(1, 2, 3))
    table.register(bits)
    data = table.encoded(is_pretty=True)
    for size, expected in ((112, 1), (96, 0)):
        again = ConsumerFilterTable(host, CONFIG, is_bloom_valid=partial(has_bits, size))
        again.decode(data)
        assert len(again.of_topic("t")) == expected


def test_request_modes_are_kept_by_topic_and_group() -> None:
    """A mode that was set is found, and reads again as it was written."""
    table = MessageRequestModeTable(world(), CONFIG)
    assert table.encoded(is_pretty=True) == b'{\n\t"messageRequestModeMap":{}\n}'
    table.put(MessageRequestMode("t", "g", POP, 2))
    assert table.encoded() == (
        b'{"messageRequestModeMap":{"t":{"g":{"consumerGroup":"g","mode":"POP",'
        b'"popShareQueueNum":2,"topic":"t"}}}}'
    )
    again = MessageRequestModeTable(world(), CONFIG)
    again.decode(table.encoded(is_pretty=True))
    assert again.get("t", "g") == MessageRequestMode("t", "g", POP, 2)
    assert again.get("t", "other") is None


def test_subscriptions_of_a_group_are_written_in_javas_order() -> None:
    """Whatever the order in which a request has their fields: 5.5.0 writes them by name."""
    host = world()
    asked = [{"topic": "x", "expression": "*", "version": 1, "expressionType": "TAG"}]
    fields = {"groupName": "g", "subscriptionDataSet": asked}
    table = SubscriptionGroupTable(host, CONFIG)
    table.put(SubscriptionGroupConfig.from_json(fields))
    table.persist()
    text = read_file(host.fs, f"{CONFIG}/subscriptionGroup.json").decode()
    names = ["expression", "expressionType", "topic", "version"]
    places = [text.index(f'"{name}":') for name in names]
    assert places == sorted(places)
