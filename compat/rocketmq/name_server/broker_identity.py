"""Who a broker says it is, read from the header of its requests."""

from __future__ import annotations

from collections.abc import Mapping

from logstore.compat.rocketmq.name_server.routes import BrokerIdentity
from logstore.compat.rocketmq.wire.fields import read_long, read_text


def broker_identity(fields: Mapping[str, str]) -> BrokerIdentity:
    """
    Return cluster, name, address and id.

    Raises:
        RefusedError: SYSTEM_ERROR; one of them is missing.

    """
    return BrokerIdentity(
        read_text(fields, "clusterName"),
        read_text(fields, "brokerName"),
        read_text(fields, "brokerAddr"),
        read_long(fields, "brokerId"),
    )
