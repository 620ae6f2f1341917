"""What a release served: the ranges that its clients are told, and who answers what is no more."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

import attrs
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.features import NEW_IN_4_0
from logstore.compat.kafka.registry import APIS, Api, RawHandler
from logstore.segments.kafka.config_keys import LONG_MAX, ConfigError

_FIRST_WITH_NEW_FEATURES = (4, 0)
#: from there on the controller makes the topics that others are asked for
_FIRST_TO_CREATE_ASIDE = (2, 8)
#: from there on a new cluster has a quorum of controllers where it had ZooKeeper
_FIRST_WITH_TAGS = (2, 4)
_FIRST_WITH_QUORUM = (3, 3)
#: from there on who joins a group and does not ask for its share loses its place
_FIRST_TO_GIVE_UP_ON_SYNCS = (2, 8)
#: DescribeAcls, CreateAcls, DescribeConfigs: the release that first said "" where nothing is wrong
_FIRST_WITH_EMPTY_MESSAGES = {29: (2, 5), 30: (2, 5), 32: (2, 7)}
#: releases before 4.3 work an assignment out as soon as something has changed
_ASSIGNED_AT_ONCE = {
    f"group.{kind}.assignment.interval.ms": "0" for kind in ("consumer", "share", "streams")
}
#: settings of a broker by the release in which their defaults became those of today, and what they
#: were before
_OLD_DEFAULTS: tuple[tuple[tuple[int, int], Mapping[str, str]], ...] = (
    ((2, 5), {"message.max.bytes": "1000012"}),
    ((3, 6), {"transaction.partition.verification.enable": "false"}),
    ((4, 0), {"log.message.timestamp.after.max.ms": str(LONG_MAX)}),
    ((4, 3), _ASSIGNED_AT_ONCE),
)
#: the highest of the versions from 0 on that a broker of today has no more, and who has them
_OLD: Mapping[int, tuple[int, str]] = {
    0: (2, "old_produce"),
    1: (3, "old_fetch"),
    2: (0, "old_list_offsets"),
    8: (1, "old_offset_commit"),
    9: (0, "old_offset_fetch"),
    19: (1, "old_create_topics"),
    20: (0, "old_delete_topics"),
}
#: APIs that lost versions whose messages are still known: who serves them today does, too
_KNOWN_FROM_0 = (23, 27, 29, 30, 31, 32, 34, 35, 38, 39, 40, 41)


@attrs.frozen
class Emulation:
    """
    A release by its number, as ``(3, 9)``.

    `ranges` are what clients are told of each API: what the release served and we can.
    """

    release: tuple[int, ...]
    ranges: Mapping[int, tuple[int, int]]
    _old: Mapping[int, Api]

    @classmethod
    def of(cls, text: str) -> Emulation:
        """
        Return the emulation of a release, as in "3.9" or "0.10.2".

        Raises:
            ConfigError: nothing is known of it.

        """
        known = {".".join(map(str, release)): release for release in BROKER_API_VERSIONS}
        release = known.get(text)
        if release is None:
            raise ConfigError("emulated release", text, f"there are {', '.join(known)}")
        told = BROKER_API_VERSIONS[release]
        ranges = {key: _served(key, *told[key]) for key in sorted(told) if key in APIS}
        old = {key: _old_api(key) for key in _OLD}
        old |= {key: attrs.evolve(APIS[key], version_min=0) for key in _KNOWN_FROM_0}
        return cls(release, {key: it for key, it in ranges.items() if it[0] <= it[1]}, old)

    def levels(self, levels: Mapping[str, int]) -> Mapping[str, int]:
        """Return the levels of those features that the release had; the others are at 0."""
        if self.release >= _FIRST_WITH_NEW_FEATURES:
            return levels
        return {name: level for name, level in levels.items() if name not in NEW_IN_4_0}

    def settings(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """Return a broker's settings, with the release's own defaults where nothing is given."""
        found = dict(given)
        for since, defaults in _OLD_DEFAULTS:
            if self.release < since:
                found = {**defaults, **found}
        return found

    @property
    def has_features_of_4_0(self) -> bool:
        """Tell whether clients may be told of ``transaction.version`` and ``group.version``."""
        return self.release >= _FIRST_WITH_NEW_FEATURES

    @property
    def knows_tags(self) -> bool:
        """Tell whether headers of flexible versions are read as such (KIP-482)."""
        return self.release >= _FIRST_WITH_TAGS

    @property
    def has_zookeeper(self) -> bool:
        """Tell whether the cluster is one with ZooKeeper."""
        return self.release < _FIRST_WITH_QUORUM

    def error_of_new_topics(self, *, is_controller: bool) -> ErrorCode:
        """Return what a node tells of a topic that a question brings into being."""
        makes_it = is_controller or self.release < _FIRST_TO_CREATE_ASIDE
        if self.has_zookeeper and makes_it:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @property
    def gives_up_on_syncs(self) -> bool:
        """Tell whether a member that has joined must ask for its share in time."""
        return self.release >= _FIRST_TO_GIVE_UP_ON_SYNCS

    def message_of_success(self, key: int) -> str | None:
        """Return what an API says of why something was refused that was not."""
        return "" if self.release >= _FIRST_WITH_EMPTY_MESSAGES[key] else None

    def api(self, key: int, version: int) -> Api | None:
        """Return who serves a request; None if the release did not."""
        lowest, highest = self.ranges.get(key, (0, -1))
        if not lowest <= version <= highest:
            return None
        api = APIS[key]
        return api if version >= api.version_min else self._old[key]


def _served(key: int, lowest: int, highest: int) -> tuple[int, int]:
    """Return the part of a range that is served here."""
    here = 0 if key in _OLD or key in _KNOWN_FROM_0 else APIS[key].version_min
    return max(lowest, here), min(highest, APIS[key].version_max)


def _old_api(key: int) -> Api:
    """Return the entry of the old versions, whose file is imported at first use."""
    highest, file = _OLD[key]

    def handle(*question: object) -> object:
        handler: Callable[..., object] = importlib.import_module(f"{__package__}.{file}").handle
        return handler(*question)

    raw: RawHandler = handle  # type: ignore[assignment] # as the files have it
    return Api(key, APIS[key].name, 0, highest, flexible_from=highest + 1, handle_raw=raw)
