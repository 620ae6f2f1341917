"""A real broker and ours, both new, with the settings that sessions about some areas need."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tests.interop.conftest import QUICK_HEARTBEATS, SETTINGS, start_real
from tests.interop.our_broker import OurBroker
from tests.interop.security_stage import both_secured

#: the addresses of a listener by its name, ours and the real one's
Listeners = Mapping[str, tuple[str, str]]
#: Assignments are worked out with the heartbeat that asks for them, as ours does it; and ours, too,
#: is told that it is alone.
AT_ONCE: dict[str, object] = {
    **{f"group.{kind}.assignment.interval.ms": 0 for kind in ("consumer", "share", "streams")},
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.streams.initial.rebalance.delay.ms": 0,
}
#: What a session about rules of access needs: whoever speaks may do everything.
AUTHORIZER: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
#: areas for which brokers have listeners with logins
SECURED = frozenset(("logins", "delegations"))
#: Who is refused is told so at once (a real broker looks every 300 ms whether the time for it has
#: come); what ends sessions does not come by chance.
LOGIN_TIMES: dict[str, object] = {
    "connection.failed.authentication.delay.ms": 0,
    "listener.name.short.connections.max.reauth.ms": 600_000,
}


class Both(NamedTuple):
    """Where both are, ours first, and where they keep what they know."""

    bootstraps: tuple[str, str]
    data: tuple[Path, Path]
    #: what both have besides the listener where anybody may come in
    listeners: Listeners


@contextmanager
def both_brokers(
    directory: Path, areas: Collection[str], more: Mapping[str, object] = MappingProxyType({})
) -> Generator[Both]:
    """Run both with some `more` settings than areas need, or end the test as `missing` says."""
    if not SECURED.isdisjoint(areas):
        with both_secured(directory, QUICK_HEARTBEATS | AT_ONCE | LOGIN_TIMES) as (real, ours):
            found = {name: (at, real.listeners[name]) for name, at in ours.listeners.items()}
            yield Both(found["PLAIN"], (ours.broker.data, real.broker.data), found)
        return
    settings = SETTINGS | QUICK_HEARTBEATS | AT_ONCE | (AUTHORIZER if "acls" in areas else {})
    settings |= more
    with ExitStack() as stack:
        ours_plain = stack.enter_context(OurBroker(directory / "ours", settings))
        peer = start_real(directory / "real", settings=settings)
        stack.callback(peer.stop)
        bootstraps = ours_plain.bootstrap, peer.bootstrap
        yield Both(bootstraps, (ours_plain.data, peer.data), {})
