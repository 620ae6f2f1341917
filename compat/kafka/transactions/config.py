"""The settings of the transaction coordinator, under Kafka's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.features import TRANSACTION_VERSION

if TYPE_CHECKING:
    from logstore.compat.kafka.configs.settings import BrokerSettings


@attrs.frozen
class TransactionConfig:
    """
    What a broker can be told about transactions.

    `transaction_version` is the level of the feature of that name. Source:
    ``TransactionStateManagerConfig``.
    """

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000
    transaction_version: int = 2
    #: how long a marker that could not be written waits for the next try; doubled each time
    marker_retry_ms: int = 100
    marker_retry_max_ms: int = 10_000

    @classmethod
    def of(cls, settings: BrokerSettings, features: Mapping[str, int]) -> TransactionConfig:
        """Return what a broker's settings and its cluster's features say of transactions."""
        integer = settings.given.integer
        return cls(
            transaction_version=features.get(TRANSACTION_VERSION, 0),
            transaction_max_timeout_ms=integer("transaction.max.timeout.ms"),
            transactional_id_expiration_ms=integer("transactional.id.expiration.ms"),
            abort_timed_out_interval_ms=integer(
                "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            ),
            remove_expired_interval_ms=integer(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
        )

    def at(self, features: Mapping[str, int]) -> TransactionConfig:
        """Return the same at other levels of the cluster's features."""
        return attrs.evolve(self, transaction_version=features.get(TRANSACTION_VERSION, 0))
