"""What all the programs saw of one broker: run once a session, whichever process asks first."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logstore.tools.dev.file_lock import held
from logstore.tools.dev.maven import PeerUnavailable
from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from tests.interop.conftest import missing
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_programs import Sections, ali_ons, cpp_client, java_client, mqadmin

#: Both get these: programs filter by SQL, and wait for check-backs no longer than they must.
SETTINGS: dict[str, object] = {
    **CALM,
    "enablePropertyFilter": "true",
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1000,
}

Transcript = dict[str, Sections]
#: by "real" (5.x), "ours", or "foreign", which is ours over Kafka's layout
Session = Callable[[str], Transcript]


def start_real(
    version: str,
    directory: Path,
    settings: dict[str, object] | None = None,
    as_is: Path | None = None,
    broker_port: int | None = None,
    *,
    is_busy: bool = False,
) -> RocketMQPeer:
    """Return a started real RocketMQ, or end the test as `missing` says."""
    wanted = SETTINGS | (settings or {})
    try:
        return RocketMQPeer(
            version, directory, wanted, as_is, broker_port=broker_port, is_busy=is_busy
        ).start()
    except PeerUnavailable as reason:
        missing(str(reason))


def started(
    which: str, directory: Path, settings: dict[str, object] | None = None
) -> RocketMQPeer | OurRocketMQ:
    """Return a broker that has been started; see :data:`Session`."""
    if which == "real":
        return start_real("5", directory, settings)
    layout = "kafka" if which == "foreign" else "rocketmq"
    return OurRocketMQ(directory, SETTINGS | (settings or {}), layout=layout).start()


def java_alone(which: str, version: str, scenario: str, directory: Path) -> list[str]:
    """Return what one scenario prints of a broker that has nothing else to do."""
    directory.mkdir(parents=True)
    broker = started(which, directory)
    try:
        found = java_client(broker, version, directory, scenario)
        return found.get(scenario, ["!! the section is missing", *found.get("stderr", [])])
    finally:
        broker.stop(kill=True)


def record(which: str, directory: Path, versions: Sequence[str]) -> Transcript:
    """
    Run every program against one broker and return what they printed; see :data:`Session`.

    The Java client is run in these versions.
    """
    broker = started(which, directory)
    try:
        with ThreadPoolExecutor(2) as pool:
            beside = pool.submit(lambda: {"cpp": cpp_client(broker), "ali-ons": ali_ons(broker)})
            found = {
                f"java-{version}": java_client(broker, version, directory) for version in versions
            }
            found |= beside.result()
        # Alone and last: it takes away the broker's right to be written to, for a moment.
        found["mqadmin"] = mqadmin(broker, "5", directory)
    finally:
        broker.stop(kill=True)
    return found


@pytest.fixture(scope="session")
def java_versions(pytestconfig: pytest.Config) -> Sequence[str]:
    """The versions of the Java client that tests ask about: of the older one slow ones do."""
    return ("5",) if "not slow" in str(pytestconfig.getoption("markexpr")) else ("5", "4")


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory, java_versions: Sequence[str]) -> Session:
    """A function that returns the transcript of a broker; processes share them."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def settle(which: str, directory: Path) -> None:
        """Have it recorded, unless it is; wait for a process that is at it."""
        file = shared / f"rocketmq-{which}.json"
        with held(shared / f"rocketmq-{which}.lock"):
            if not file.exists():
                found = record(which, directory, java_versions)
                file.write_text(json.dumps(found, ensure_ascii=False))

    def transcript(which: str) -> Transcript:
        # Much of it is waiting, and the other one will be wanted next.
        both = {which, "ours" if which == "real" else "real"}
        directories = {one: tmp_path_factory.mktemp(one) for one in both}
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(settle, directories, directories.values()))
        loaded: Transcript = json.loads((shared / f"rocketmq-{which}.json").read_text())
        return loaded

    return transcript
