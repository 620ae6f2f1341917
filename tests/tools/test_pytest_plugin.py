"""The fixtures that pytest finds when logstore is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]


def passed(pytester: pytest.Pytester, source: str, count: int) -> None:
    """Run tests in a process of their own; so many must pass, and no other."""
    pytester.makepyfile(source)
    outcome = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    outcome.assert_outcomes(passed=count)


def test_a_broker_for_each_test(pytester: pytest.Pytester) -> None:
    """What the first one does the second one does not see."""
    passed(
        pytester,
        """
        import confluent_kafka, pytest

        @pytest.mark.parametrize("number", [1, 2])
        def test_produce(kafka_broker, number):
            producer = confluent_kafka.Producer({"bootstrap.servers": kafka_broker.bootstrap})
            producer.produce("t", b"v")
            assert producer.flush(20) == 0
            partition = kafka_broker.broker.topics["t"].partitions[0]
            assert kafka_broker.call(lambda: partition.end_offset) == 1

        def test_rocketmq(rocketmq_broker):
            assert rocketmq_broker.layout == "rocketmq"
            assert rocketmq_broker.bootstrap == rocketmq_broker.name_server
        """,
        3,
    )


def test_a_broker_for_many_tests(pytester: pytest.Pytester) -> None:
    """What was planned to go wrong is over at the end of each."""
    pytester.makeini("[pytest]\nlogstore_scope = session")
    passed(
        pytester,
        """
        ports = set()

        def test_first(kafka_broker):
            ports.add(kafka_broker.port)
            kafka_broker.faults.drop("*", times=None)
            kafka_broker.disk.is_read_only = True

        def test_second(kafka_broker):
            assert ports == {kafka_broker.port}
            assert kafka_broker.faults.planned == ()
            assert not kafka_broker.disk.is_read_only
        """,
        2,
    )


def test_a_broker_of_ones_own(pytester: pytest.Pytester) -> None:
    """With settings, another release, both protocols, or data that is there before."""
    seed = pytester.mkdir("seed")
    subprocess.run([sys.executable, "-c", _SEED, str(seed)], check=True, timeout=60)
    before = {path: path.read_bytes() for path in seed.rglob("*") if path.is_file()}
    pytester.makeini("[pytest]\nlogstore_scope = session")
    passed(
        pytester,
        """
        import pytest

        def test_shared(kafka_broker):
            assert kafka_broker.broker.config.num_partitions == 1

        @pytest.mark.logstore(settings={"num.partitions": "6"})
        def test_settings(kafka_broker):
            assert kafka_broker.broker.config.num_partitions == 6

        @pytest.mark.logstore(data="seed")
        def test_data(kafka_broker):
            partition = kafka_broker.broker.topics["seeded"].partitions[0]
            assert partition.end_offset == 1
            kafka_broker.call(lambda: kafka_broker.broker.create_topic("more", 1))

        @pytest.mark.logstore(protocols=("kafka", "rocketmq"))
        def test_protocols(rocketmq_broker):
            assert rocketmq_broker.bootstrap != rocketmq_broker.name_server

        @pytest.mark.logstore(emulate="0.10.2")
        def test_emulated(kafka_broker):
            assert kafka_broker.broker.emulation is not None

        @pytest.mark.logstore(users={"alice": "secret"}, tls=True)
        def test_secured(kafka_broker):
            assert list(kafka_broker.listeners) == ["SASL_SSL"]
        """,
        6,
    )
    assert {path: path.read_bytes() for path in seed.rglob("*") if path.is_file()} == before


_SEED = """
import sys, confluent_kafka
from logstore.compat import TestBroker
with TestBroker(sys.argv[1]) as broker:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("seeded", b"v")
    assert producer.flush(20) == 0
"""


def test_what_makes_no_sense(pytester: pytest.Pytester) -> None:
    """Is said so."""
    pytester.makepyfile(
        "import pytest\n@pytest.mark.logstore(data='none')\ndef test(kafka_broker): 0"
    )
    outcome = pytester.runpytest_subprocess()
    outcome.assert_outcomes(errors=1)
    outcome.stdout.fnmatch_lines(["*UsageError: mark.logstore(data='none')*is no directory*"])
    pytester.makeini("[pytest]\nlogstore_scope = ever")
    outcome = pytester.runpytest_subprocess()
    assert outcome.ret != 0
    assert "logstore_scope = ever: it is one of" in outcome.stdout.str() + outcome.stderr.str()


def test_whoever_does_not_ask_pays_nothing(pytester: pytest.Pytester) -> None:
    """Neither a broker nor its libraries are imported."""
    passed(
        pytester,
        """
        import sys

        def test():
            assert "logstore.tools.pytest_plugin" in sys.modules
            assert not {"kafka", "uvloop", "attr", "logstore.compat.test_broker"} & set(sys.modules)
        """,
        1,
    )


def test_markers_and_fixtures_are_explained(pytester: pytest.Pytester) -> None:
    """By pytest's own lists."""
    assert (
        "@pytest.mark.logstore(data=None" in pytester.runpytest_subprocess("--markers").stdout.str()
    )
    told = pytester.runpytest_subprocess("--fixtures").stdout.str()
    assert "kafka_broker" in told
    assert "rocketmq_broker" in told


def test_a_shared_broker_that_went_comes_back(pytester: pytest.Pytester) -> None:
    """A test that crashes or stops it does not fail all that come after."""
    pytester.makeini("[pytest]\nlogstore_scope = session")
    passed(
        pytester,
        """
        import pytest

        @pytest.mark.parametrize("end", ["crash", "stop", "none"])
        @pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
        def test(request, layout, end):
            broker = request.getfixturevalue(f"{layout}_broker")
            broker.create_topic(end)
            if end != "none":
                getattr(broker, end)()
        """,
        6,
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("'seed'", "name it, as data='seed'"),
        ("setings={}", "(setings=...): there is no such word; there are *settings*"),
        ("layout='rocketmq'", "(layout=...): there is no such word"),
        ("directory='data'", "(directory=...): there is no such word"),
    ],
)
def test_words_of_the_marker_that_there_are_not(
    pytester: pytest.Pytester, words: str, told: str
) -> None:
    """Are refused, not passed over."""
    pytester.makepyfile(f"import pytest\n@pytest.mark.logstore({words})\ndef test(kafka_broker): 0")
    outcome = pytester.runpytest_subprocess()
    outcome.assert_outcomes(errors=1)
    outcome.stdout.fnmatch_lines([f"*UsageError: mark.logstore*{told}*"])
