"""The brokers and tools that interop tests talk to."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from logstore.tools.dev.kafka_peer import TOOL_JVM, KafkaPeer, class_archive, java
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.clients import CLIENTS, Client, settings
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.tool_session import Done, ToolSession
from tests.interop.turns import rank

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = "4"
#: Of tests that do not say it themselves. Machines may be busy: it ends what hangs, no more.
TEST_SECONDS_MAX = 400
# Both brokers get these: samples carry old timestamps, and groups need not wait for company.
SETTINGS: dict[str, object] = {
    "log.retention.ms": -1,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "offsets.topic.num.partitions": 2,
    "auto.create.topics.enable": "true",
    "num.partitions": 1,
}
#: Members of the new kinds of group learn of each other by heartbeats, by themselves every 5 s.
QUICK_HEARTBEATS: dict[str, object] = {
    f"group.{kind}.{which}heartbeat.interval.ms": 500
    for kind in ("consumer", "share", "streams")
    for which in ("", "min.")
}


class Broker(Protocol):
    """What a test sees of a broker, the real one or ours."""

    bootstrap: str
    data: Path
    log: Path

    def start(self) -> object:
        """Start, on the same port as before; return once it answers."""
        ...

    def stop(self, kill: bool = False) -> None:
        """Stop cleanly, or by SIGKILL."""
        ...


RunTool = Callable[..., Done]
#: of these, what is about the foreign layout is left to people: there other clients say the same
#: in less time
LONG_AT_THE_FOREIGN_LAYOUT = {
    "test_connect.py", "test_consumer_groups.py", "test_java_tools.py", "test_offset_admin.py",
}  # fmt: skip
CreateTopic = Callable[..., str]


def missing(reason: str) -> NoReturn:
    """Skip for want of a peer; under CI a missing peer is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def start_real(
    directory: Path,
    version: str = VERSION,
    settings: dict[str, object] | None = None,
    as_is: Path | None = None,
) -> KafkaPeer:
    """Return a started real Kafka, or end the test as `missing` says."""
    try:
        wanted = SETTINGS | (settings or {})
        return KafkaPeer(version, directory, settings=wanted, as_is=as_is).start()
    except PeerUnavailable as reason:
        missing(str(reason))


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    """One real Kafka for all tests of the session."""
    peer = start_real(tmp_path_factory.mktemp("real"), settings=QUICK_HEARTBEATS)
    yield peer
    peer.stop()


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    """One `logstore serve` for all tests of the session."""
    broker = OurBroker(tmp_path_factory.mktemp("ours"), SETTINGS | QUICK_HEARTBEATS).start()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    """One `logstore serve` of Kafka's protocol over RocketMQ's layout, for all tests."""
    over = ("--protocol", "kafka", "--layout", "rocketmq")
    settings = SETTINGS | QUICK_HEARTBEATS
    broker = OurBroker(tmp_path_factory.mktemp("foreign"), settings, arguments=over).start()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session of Spark for all tests of a process; its JVM compiles lightly, as peers' do."""
    from logstore.compat.spark import local_session

    jvm = "-XX:TieredStopAtLevel=1"
    settings = {"spark.sql.session.timeZone": "UTC", "spark.driver.extraJavaOptions": jvm}
    session = local_session("local[2]", settings)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session", params=["real", "ours", "foreign"])
def broker(request: pytest.FixtureRequest) -> Broker:
    """
    First the real one, which proves the test, then ours, which the test proves.

    Tests marked `either_layout`, and not `own_layout`, also get ours over the other's layout.
    """
    found: Broker = request.getfixturevalue(request.param)
    return found


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not to run over the foreign layout, and put what takes long first."""
    items.sort(key=lambda item: rank(item.path))
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))
    left_out = [item for item in items if is_foreign(item) and not is_for_either_layout(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_itemcollected(item: pytest.Item) -> None:
    """
    Mark what is left to people.

    That a real broker does what is wanted of ours proves the test, once for good; CI has time for
    what the tests prove.
    """
    call = getattr(item, "callspec", None)
    is_at_the_real_one = call is not None and "real" in call.id.split("-")
    if is_at_the_real_one or (is_foreign(item) and item.path.name in LONG_AT_THE_FOREIGN_LAYOUT):
        item.add_marker(pytest.mark.slow)


def is_foreign(item: pytest.Item) -> bool:
    """Tell whether a test is about to run over the foreign layout."""
    return broker_of(item) == "foreign"


def broker_of(item: pytest.Item) -> str | None:
    """Return which broker a test is about to talk to, where it is one of several."""
    call = getattr(item, "callspec", None)
    return None if call is None else call.params.get("broker")


def is_for_either_layout(item: pytest.Item) -> bool:
    """Tell whether a test holds over the foreign layout, too."""
    has_own = item.get_closest_marker("own_layout") is not None
    return item.get_closest_marker("either_layout") is not None and not has_own


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Each of the foreign client libraries."""
    found: Client = request.param
    return found


_numbers = itertools.count()


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A legal topic name of the test's own."""
    return f"{re.sub('[^a-zA-Z0-9]+', '-', request.node.name)[:80]}-{next(_numbers)}"


def new_topic(
    bootstrap: str, name: str, partitions: int = 1, config: dict[str, str] | None = None
) -> None:
    """Create a topic and wait until the broker itself knows it."""
    admin = AdminClient(settings(bootstrap))
    asked = NewTopic(name, num_partitions=partitions, config=config or {})
    admin.create_topics([asked])[name].result(30)
    eventually(lambda: led_partitions(admin, name) == list(range(partitions)), what=name)


def led_partitions(admin: AdminClient, topic: str) -> list[int]:
    """
    Return the partitions of a topic that have a leader, as the broker tells by now.

    The real controller answers first, and tells its broker a little later.
    """
    found = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return sorted(number for number, one in found.items() if one.error is None and one.leader >= 0)


@pytest.fixture
def create_topic(topic_name: str) -> CreateTopic:
    """A function that creates the test's topic and returns its name."""

    def create(bootstrap: str, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        new_topic(bootstrap, topic_name, partitions, config)
        return topic_name

    return create


#: These ask a broker and end. What produces or consumes has hooks that only the end of a JVM runs.
IN_ONE_JVM = {
    "AclCommand", "BrokerApiVersionsCommand", "ClusterTool", "ConsumerGroupCommand",
    "DeleteRecordsCommand", "GetOffsetShell", "LogDirsCommand", "ShareGroupCommand",
    "StreamsGroupCommand", "TopicCommand", "TransactionsCommand", "kafka.admin.ConfigCommand",
}  # fmt: skip


def run_alone(version: str, name: str, *args: str, stdin: str) -> Done:
    """Run a tool in a JVM of its own."""
    flags = class_archive(version).flags(may_write=False)
    command = java(version, name, *args, jvm=f"{TOOL_JVM} {flags}")
    done = subprocess.run(
        command, text=True, capture_output=True, input=stdin, timeout=240, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def kafka_tool() -> Iterator[RunTool]:
    """A function that runs one of Kafka's own tools by its short name, without judging it."""
    sessions: dict[str, ToolSession] = {}

    def run(
        name: str, *args: str, stdin: str = "", check: bool = True, version: str = VERSION
    ) -> Done:
        try:
            if name in IN_ONE_JVM:
                session = sessions.setdefault(version, ToolSession(version))
                done = session.run(name, *args, stdin=stdin)
            else:
                done = run_alone(version, name, *args, stdin=stdin)
        except PeerUnavailable as reason:
            missing(str(reason))
        if check:
            assert done.status == 0, f"{name} {args}: {done.stdout}\n{done.stderr}"
        return done

    yield run
    for session in sessions.values():
        session.close()
