"""The layers of a broker's settings as one node of a cluster has them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS


@attrs.frozen
class SeenSettings:
    """
    What a node shows of its settings.

    `of_broker` was changed on this node, `of_cluster` for every node, `static` was given at the
    start. `log_defaults` is what they are to topics that say nothing themselves.
    """

    of_broker: Mapping[str, str]
    of_cluster: Mapping[str, str]
    static: Mapping[str, str]
    log_defaults: Mapping[str, str]

    def value_of(self, name: str) -> str | None:
        """Return the text of the strongest layer; Kafka's default if there is none."""
        for layer in (self.of_broker, self.of_cluster, self.static):
            if name in layer:
                return layer[name]
        return BROKER_CONFIG_KEYS[name].default
