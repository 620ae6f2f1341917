"""
Fixtures for pytest, there for whoever has logstore installed.

``kafka_broker`` and ``rocketmq_broker`` are brokers that run: each is a
:class:`~logstore.compat.test_broker.TestBroker`. What a test plans to go wrong is over when it
ends, and a shared one that it crashed or stopped is up again. Each test has a broker of its own;
``logstore_scope`` in the ini file (``class``, ``module``, ``package``, ``session``) lets many have
the same. A marker asks for one that is different, and not shared::

    @pytest.mark.logstore(settings={"num.partitions": "6"})
    @pytest.mark.logstore(data="tests/seed", emulate="2.8")
    @pytest.mark.logstore(protocols=("kafka", "rocketmq"))
    @pytest.mark.logstore(nodes=3)
    @pytest.mark.logstore(users={"alice": "secret"}, tls=True)

``data`` is a directory of a real broker or of ours, from the root directory of the tests; a copy of
it is served. The other words are those of :class:`~logstore.compat.test_broker.TestBroker`.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    # what nobody asks for is not imported
    from logstore.compat.test_broker import TestBroker

_MARKER, _SCOPE = "logstore", "logstore_scope"
_SCOPES = ("function", "class", "module", "package", "session")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Make the scope of brokers known."""
    parser.addini(_SCOPE, f"how long a broker is shared: {', '.join(_SCOPES)}", default="function")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(data=None, **options): a broker of one's own, on a copy of the directory "
        "`data`, with `options` of logstore.compat.TestBroker",
    )


def _scope(fixture_name: str, config: pytest.Config) -> Any:
    del fixture_name
    scope: str = config.getini(_SCOPE)
    if scope not in _SCOPES:
        raise pytest.UsageError(f"{_SCOPE} = {scope}: it is one of {', '.join(_SCOPES)}")
    return scope


@contextmanager
def _running(layout: str, directory: str | None = None, **options: Any) -> Generator[TestBroker]:
    from logstore.compat.test_broker import TestBroker

    options = {"layout": layout, **options}
    with TestBroker(directory, **options) as broker:
        yield broker


@pytest.fixture(scope=_scope, name="_logstore_kafka")
def shared_kafka() -> Iterator[TestBroker]:
    """A Kafka broker as long as the ini file says; ask for ``kafka_broker``."""
    with _running("kafka") as broker:
        yield broker


@pytest.fixture(scope=_scope, name="_logstore_rocketmq")
def shared_rocketmq() -> Iterator[TestBroker]:
    """The same for RocketMQ; ask for ``rocketmq_broker``."""
    with _running("rocketmq") as broker:
        yield broker


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[TestBroker]:
    """A running Kafka broker: ``kafka_broker.bootstrap`` is its address."""
    yield from _broker(request, "kafka")


@pytest.fixture
def rocketmq_broker(request: pytest.FixtureRequest) -> Iterator[TestBroker]:
    """A running RocketMQ broker: ``rocketmq_broker.bootstrap`` is its name server's address."""
    yield from _broker(request, "rocketmq")


def _broker(request: pytest.FixtureRequest, layout: str) -> Iterator[TestBroker]:
    marker = request.node.get_closest_marker(_MARKER)
    if marker is None:
        broker: TestBroker = request.getfixturevalue(f"_logstore_{layout}")
        yield broker
        broker.faults.clear()
        broker.disk.clear()
        if not broker.is_running:  # the next test finds it up
            broker.start()
        return
    options = dict(marker.kwargs)
    _check(marker)
    data = options.pop("data", None)
    directory = None if data is None else _copy_of(request, data)
    with _running(layout, directory, **options) as broker:
        yield broker


def _check(marker: pytest.Mark) -> None:
    """Refuse what would be passed over in silence, and words that there are not."""
    from logstore.compat.test_broker import TestBroker

    known = {"data", *signature(TestBroker).parameters} - {"directory", "layout"}
    for word in marker.kwargs:
        if word not in known:
            raise pytest.UsageError(
                f"mark.{_MARKER}({word}=...): there is no such word; there are "
                f"{', '.join(sorted(known))}"
            )
    if marker.args:
        raise pytest.UsageError(
            f"mark.{_MARKER}({marker.args[0]!r}): name it, as data={marker.args[0]!r}"
        )


def _copy_of(request: pytest.FixtureRequest, data: str) -> str:
    """Return a copy of a directory that the test may change."""
    source = Path(request.config.rootpath, data)
    if not source.is_dir():
        raise pytest.UsageError(f"mark.{_MARKER}(data={data!r}): {source} is no directory")
    target: Path = request.getfixturevalue("tmp_path") / "logstore"
    shutil.copytree(source, target)
    return str(target)
