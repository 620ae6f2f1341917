"""A broker as slave: what its name server says about the master is where it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.replication.follower import Follower
from logstore.compat.rocketmq.replication.metadata_sync import MetadataSync

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.registrar import Reach

__all__ = ["SlaveRole"]


class SlaveRole:
    """
    Follows a master: its commit log, and its tables.

    Where ``haMasterAddress`` is set the commit log comes from there, whatever a name server says.
    5.5.0 passes that setting over, 4.9.8 does not.
    """

    def __init__(self, broker: Broker, reach: Reach) -> None:
        self.broker = broker
        self.follower = Follower(
            broker.store,
            broker.replication.master.settings,
            broker.timers,
            reach,
            broker.requests_served,
        )
        broker.follower = self.follower
        self.metadata = MetadataSync(broker, reach)
        self._fixed_ha_address = broker.config.settings.get("haMasterAddress", "").strip()

    @property
    def knows_master(self) -> bool:
        """Tell whether a master was told of."""
        return bool(self.follower.address and self.metadata.address)

    def start(self) -> None:
        """Follow the master that the settings name, if they name one."""
        if self._fixed_ha_address:
            self.follower.follow(self._fixed_ha_address)

    def master_found(self, master_address: str, ha_address: str) -> None:
        """Follow the master that a name server has told of; nothing where it told of none."""
        if ha_address and not self._fixed_ha_address:
            self.follower.follow(ha_address)
        if master_address:
            self.metadata.follow(master_address)

    def stop(self) -> None:
        """Follow nobody any more."""
        self.follower.stop()
        self.metadata.stop()
