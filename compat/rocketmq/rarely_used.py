"""Parts of a broker that most do without: each is loaded when it is asked for first."""

from __future__ import annotations

import importlib
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

from logstore.compat.rocketmq.lite.lite_rules import is_parent

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.access import Access
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Sign
    from logstore.compat.rocketmq.lite.lite import Lite
    from logstore.compat.rocketmq.pop.popping import Popping
    from logstore.compat.rocketmq.pulling.cold_reads import ColdReads


class RarelyUsed:
    """What :class:`~logstore.compat.rocketmq.broker.Broker` has of these."""

    @property
    def _broker(self) -> Broker:
        return cast("Broker", self)

    @cached_property
    def popping(self) -> Popping:
        """Pop consumption: what most brokers never need is loaded when it is asked for first."""
        module = importlib.import_module("logstore.compat.rocketmq.pop.popping")
        found: Popping = module.Popping(self._broker)
        return found

    @cached_property
    def access(self) -> Access:
        """Users and rules, which most brokers do without."""
        from logstore.compat.rocketmq.auth.access import Access
        from logstore.compat.rocketmq.auth.settings import AccessSettings

        broker = self._broker
        directory = f"{broker.store.directory}/config"
        return Access(broker.host, directory, AccessSettings.of(broker.config))

    @cached_property
    def cold_reads(self) -> ColdReads:
        """How much cold data groups may read."""
        from logstore.compat.rocketmq.pulling.cold_reads import ColdReads

        return ColdReads(self._broker.config)

    @property
    def sign(self) -> Sign | None:
        """What signs requests to other servers, if the settings say as whom."""
        config = self._broker.config
        if not config["innerClientAuthenticationCredentials"]:
            return None
        from logstore.compat.rocketmq.auth.settings import inner_client_of
        from logstore.compat.rocketmq.auth.signatures import signed_fields

        credentials = inner_client_of(config)
        return None if credentials is None else partial(signed_fields, credentials)

    @property
    def has_popped(self) -> bool:
        """Tell whether there is anything of pop consumption."""
        return "popping" in self.__dict__

    @cached_property
    def lite(self) -> Lite:
        """Lite topics."""
        module = importlib.import_module("logstore.compat.rocketmq.lite.lite")
        found: Lite = module.Lite(self._broker)
        return found

    @property
    def has_lite(self) -> bool:
        """Tell whether anybody has asked about lite topics."""
        return "lite" in self.__dict__

    def expire_lite_topics(self) -> None:
        """Delete lite topics whose time is over, if there can be any."""
        if self.has_lite or any(map(is_parent, self._broker.topics.table.topics.values())):
            self.lite.expiry.clean()
