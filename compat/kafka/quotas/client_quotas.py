"""
The limits in force, and who has used how much of them.

A limit is that of a user, of a client id, or of a client id of a user; each may also be the default
of those that have none. Of all that fit the closest counts, by the order of `_PRECEDENCE`.

Source: ``ClientQuotaManager``, ``ClientRequestQuotaManager``, ``ControllerMutationQuotaManager``,
``ClientQuotaMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.quotas.rate import TokenBucket, Window, WindowedRate
from logstore.compat.kafka.quotas.stopwatch import Stopwatch

if TYPE_CHECKING:
    from logstore.compat.kafka.connection import Client
    from logstore.host import Clock
    from logstore.segments.kafka.broker_config import BrokerConfig
    from logstore.segments.kafka.cluster_metadata.access_records import QuotaEntity
    from logstore.segments.kafka.cluster_metadata.image import MetadataImage

PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE = "producer_byte_rate", "consumer_byte_rate"
REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE = "request_percentage", "controller_mutation_rate"
USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)
_SECOND_MS = 1000
_PERCENT = 100
#: in an entity: it is not about users, or not about client ids; None is the default of them
_ABSENT = ""
#: how many clients are remembered
_METERED_MAX = 10_000
#: user and client id of an entity
_Entity = tuple[str | None, str | None]


class _Fit(NamedTuple):
    """An entity that may have a limit for a client, and whose use counts against it."""

    entity: _Entity
    used_by: tuple[str, str]


def _precedence(user: str, client_id: str) -> Iterable[_Fit]:
    """Yield what may be said of a client, the closest first."""
    both, user_alone, client_alone = (user, client_id), (user, _ABSENT), (_ABSENT, client_id)
    yield _Fit((user, client_id), both)
    yield _Fit((user, None), both)
    yield _Fit((user, _ABSENT), user_alone)
    yield _Fit((None, client_id), both)
    yield _Fit((None, None), both)
    yield _Fit((None, _ABSENT), user_alone)
    yield _Fit((_ABSENT, client_id), client_alone)
    yield _Fit((_ABSENT, None), client_alone)


class Limit(NamedTuple):
    """What a client has to keep to, and under which name its use is counted."""

    rate: float
    used_by: tuple[str, str]


class ClientQuotas:
    """Limits of one broker, and their use; times are those of its clock."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._clock = clock
        self._window = _window(config, "quota")
        self._mutation_window = _window(config, "controller.quota")
        self._limits: dict[str, dict[_Entity, float]] = {}
        self._rates: dict[tuple[str, tuple[str, str]], WindowedRate] = {}
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def load(self, image: MetadataImage) -> None:
        """Take the limits that the metadata say; use that was counted stays."""
        self._limits = {}
        for entity, limits in image.client_quotas.items():
            place = _place(entity)
            if place is not None:
                for key, rate in limits.items():
                    self._limits.setdefault(key, {})[place] = rate

    @property
    def now_ms(self) -> int:
        """The time."""
        return int(self._clock.monotonic_ms())

    def limit(self, key: str, client: Client) -> Limit | None:
        """Return what limits a client, None if nothing does."""
        limits = self._limits.get(key)
        if limits is None:
            return None
        for fit in _precedence(client.principal.name, client.client_id):
            rate = limits.get(fit.entity)
            if rate is not None:
                return Limit(rate, fit.used_by)
        return None

    def record(self, key: str, limit: Limit, amount: float) -> int:
        """Count so many bytes; return for how long the client has to keep still."""
        rate, now_ms = self._rate(key, limit), self.now_ms
        rate.record(amount, now_ms)
        return rate.throttle_ms(limit.rate, now_ms)

    @property
    def limits_time(self) -> bool:
        """Tell whether there is anybody whose share of the time is limited."""
        return REQUEST_PERCENTAGE in self._limits

    def stopwatch(self, client: Client) -> Stopwatch | None:
        """Start to measure how long a request takes; None if the client may take any time."""
        limit = self.limit(REQUEST_PERCENTAGE, client)
        return None if limit is None else Stopwatch(self._clock, partial(self._record_time, limit))

    def _record_time(self, limit: Limit, elapsed_ms: float) -> int:
        """Count the time of a request; the pause for it is no longer than one sample."""
        percent_seconds = elapsed_ms * _PERCENT / _SECOND_MS
        return min(self.record(REQUEST_PERCENTAGE, limit, percent_seconds), self._window.sample_ms)

    def take_back(self, key: str, limit: Limit, amount: float) -> None:
        """Count so many bytes no more: they were not sent."""
        self._rate(key, limit).record(-amount, self.now_ms)

    def _rate(self, key: str, limit: Limit) -> WindowedRate:
        found = self._rates.get((key, limit.used_by))
        if found is None:
            if len(self._rates) >= _METERED_MAX:
                self._rates.clear()
            found = self._rates[key, limit.used_by] = WindowedRate(self._window)
        return found

    def bytes_max(self, limit: Limit) -> int:
        """Return what can be fetched at once without being throttled for it, after a pause."""
        seconds = (self._window.sample_count - 1) * self._window.sample_ms // _SECOND_MS
        return int(limit.rate * seconds)

    def bucket(self, limit: Limit) -> TokenBucket:
        """Return the tokens of changes of topics."""
        found = self._buckets.get(limit.used_by)
        if found is None:
            if len(self._buckets) >= _METERED_MAX:
                self._buckets.clear()
            found = self._buckets[limit.used_by] = TokenBucket(self._mutation_window)
        return found


def _window(config: BrokerConfig, family: str) -> Window:
    count = config.integer(f"{family}.window.num")
    return Window(count, config.integer(f"{family}.window.size.seconds") * _SECOND_MS)


def _place(entity: QuotaEntity) -> _Entity | None:
    """Return user and client id of an entity; None for those of addresses."""
    parts: Mapping[str, str | None] = dict(entity)
    if IP in parts:
        return None
    return parts.get(USER, _ABSENT), parts.get(CLIENT_ID, _ABSENT)
