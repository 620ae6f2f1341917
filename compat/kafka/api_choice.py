"""Who serves requests: the registry, or what an emulation, rules and limits make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.kafka.emulation.release import Emulation
    from logstore.compat.kafka.groups.surroundings import Surroundings
    from logstore.compat.kafka.quotas.client_quotas import ClientQuotas
    from logstore.compat.kafka.registry import FindApi
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.kafka.security.guarded_apis import GuardedApis
    from logstore.host import Host
    from logstore.segments.kafka.broker_config import BrokerConfig
    from logstore.segments.kafka.cluster_metadata.cluster_metadata import ClusterMetadata


class ApiChoice:
    """
    What stands between requests and the handlers of the registry, at one broker.

    Nothing is in the way, nor imported, where there are no emulation, authorizer, quotas and other
    nodes.
    """

    def __init__(
        self,
        config: BrokerConfig,
        metadata: ClusterMetadata,
        host: Host,
        *,
        is_cluster: bool = False,
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._host = host
        self._is_cluster = is_cluster
        #: the release whose clients are served, if it is not the newest
        self.emulation: Emulation | None = None
        #: who decides on what clients may do, if anybody does
        self.authorizer: Authorizer | None = None
        #: the registry's entries behind their guards, where there is an authorizer
        self.guarded_apis: GuardedApis | None = None
        self._quotas: ClientQuotas | None = None
        if config["authorizer.class.name"]:
            self._guard()

    def _guard(self) -> None:
        from logstore.compat.kafka.security.authorizer import Authorizer
        from logstore.compat.kafka.security.guarded_apis import GuardedApis

        self.authorizer = Authorizer.of(self._config, self._metadata, self._host.rng)
        if self.authorizer is not None:
            self.guarded_apis = GuardedApis(self.authorizer)

    def settle(self, groups: Surroundings) -> None:
        """Say what the groups of a coordinator are like in the release that is served."""
        from logstore.compat.kafka.groups.record_versions import RecordVersions

        emulation = self.emulation
        groups.gives_up_on_syncs = emulation is None or emulation.gives_up_on_syncs
        groups.versions = RecordVersions.of(emulation, self._metadata)

    @property
    def feature_levels(self) -> Mapping[str, int]:
        """The levels of features in force; a release that is emulated did not know them all."""
        levels = self._metadata.image.features
        return levels if self.emulation is None else self.emulation.levels(levels)

    def find_api(self) -> FindApi | None:
        """Return who finds the entry that serves a request; None where the registry says it."""
        found: FindApi | None = None if self.emulation is None else self.emulation.api
        if self.guarded_apis is not None:
            found = self.guarded_apis.finding(found)
        quotas = self._loaded_quotas()
        if quotas is not None:
            from logstore.compat.kafka.quotas.metered_apis import MeteredApis

            found = MeteredApis(quotas).finding(found)
        if self._is_cluster:
            from logstore.compat.kafka.nodes.node_apis import NodeApis

            found = NodeApis().finding(found)
        return found

    def _loaded_quotas(self) -> ClientQuotas | None:
        """Return the limits that the metadata have; what clients have used of them is kept."""
        if not self._metadata.image.client_quotas:
            self._quotas = None
            return None
        if self._quotas is None:
            from logstore.compat.kafka.quotas.client_quotas import ClientQuotas

            self._quotas = ClientQuotas(self._config, self._host.clock)
        self._quotas.load(self._metadata.image)
        return self._quotas
