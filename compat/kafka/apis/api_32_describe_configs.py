"""
DescribeConfigs (32): versions 1-4.

* topics: every topic setting, its effective value and where that comes from
* the node that is asked, by its number: every broker setting; with an empty name: what was changed
  for the whole cluster; another number is 42
* a list of names restricts the answer (an empty one does not); unknown names are left out
* client metrics: the settings of a subscription, also of one that is not there
* groups, also those that are not there: the settings of consumer groups
* broker loggers, by the broker's number: their levels
* 3 unknown topic, 17 not a name that a topic can have; a kind that has no settings: all is 42
* v1: synonyms; v3: types and documentation; v4: flexible
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.configs.changes import check_is_this_node
from logstore.compat.kafka.configs.client_metrics import client_metrics_entries
from logstore.compat.kafka.configs.entries import (
    ConfigEntry,
    broker_entries,
    cluster_entries,
    logger_entries,
    topic_entries,
)
from logstore.compat.kafka.configs.group_settings import group_entries
from logstore.compat.kafka.configs.resources import ResourceType
from logstore.compat.kafka.configs.shown_order import in_shown_order
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.topics.names import flaw_of

if TYPE_CHECKING:
    from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.configs.seen_settings import SeenSettings
    from logstore.compat.kafka.connection import Client

_OTHER = "Unexpected broker id, expected {} or empty string, but received {}"
_OTHER_LOGGER = "Unexpected broker id, expected {} but received {}"


def handle(
    broker: Broker, client: Client, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Show the settings of every asked resource."""
    from kafka.protocol.admin.configs import DescribeConfigsResponse

    told = _Told(broker, broker.nodes.node_of(client.listener).node_id, request)
    result_class = DescribeConfigsResponse.DescribeConfigsResult
    refusal = _refusal_of_kind(request)
    return DescribeConfigsResponse(
        version=request.API_VERSION,
        results=[
            result_class(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                **(refusal or told.of(resource)),
            )
            for resource in request.resources
        ],
    )


def _refusal_of_kind(request: DescribeConfigsRequest) -> dict[str, Any] | None:
    """Return what is told of everything if something is of a kind that has no settings."""
    for resource in request.resources:
        kind = resource.resource_type
        if kind not in set(ResourceType):
            code = ErrorCode.INVALID_REQUEST
            return _refused(RefusedRequestError(code, MESSAGES[code]))
    return None


def _refused(refusal: RefusedRequestError) -> dict[str, Any]:
    return {"error_code": refusal.code, "error_message": refusal.message, "configs": []}


class _Told:
    """What one request is told; of many topics most have the same settings, and share it."""

    def __init__(self, broker: Broker, node_id: int, request: DescribeConfigsRequest) -> None:
        self._broker = broker
        self._node_id = node_id
        self._request = request
        #: by a topic's own settings, and which are wanted
        self._of_topics: dict[tuple[frozenset[tuple[str, str]], frozenset[str]], list[Any]] = {}
        emulation = broker.emulation
        self._message = "" if emulation is None else emulation.message_of_success(request.API_KEY)

    def of(self, resource: DescribeConfigsRequest.DescribeConfigsResource) -> dict[str, Any]:
        """Return what is told of one resource."""
        wanted = frozenset(resource.configuration_keys or ())
        try:
            configs = self._configs(resource.resource_type, resource.resource_name, wanted)
        except RefusedRequestError as refusal:
            return _refused(refusal)
        return {
            "error_code": ErrorCode.NONE,
            "error_message": self._message,
            "configs": configs,
        }

    def _configs(self, kind: int, name: str, wanted: frozenset[str]) -> list[Any]:
        if kind != ResourceType.TOPIC:
            return self._shown(_entries(self._broker, self._node_id, kind, name), wanted)
        settings = _topic_settings(self._broker, name)
        key = frozenset(settings.items()), wanted
        found = self._of_topics.get(key)
        if found is None:
            seen = self._broker.dynamic_config.seen_from(self._node_id)
            found = self._of_topics[key] = self._shown(_of_topic(seen, settings), wanted)
        return found

    def _shown(self, entries: list[ConfigEntry], wanted: frozenset[str]) -> list[Any]:
        request = self._request
        return [_shown(entry, request) for entry in entries if not wanted or entry.name in wanted]


def _entries(broker: Broker, node_id: int, kind: int, name: str) -> list[ConfigEntry]:
    seen = broker.dynamic_config.seen_from(node_id)
    if kind == ResourceType.BROKER and not name:
        return cluster_entries(seen)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        is_logger = kind == ResourceType.BROKER_LOGGER
        if not name:
            raise RefusedRequestError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        check_is_this_node(node_id, name, _OTHER_LOGGER if is_logger else _OTHER, "Broker")
        return logger_entries() if is_logger else broker_entries(broker, node_id)
    if kind == ResourceType.CLIENT_METRICS and name:
        return in_shown_order(client_metrics_entries(broker, name))
    if kind == ResourceType.GROUP and name:
        return in_shown_order(group_entries(broker, seen, name))
    what = "Group" if kind == ResourceType.GROUP else "Client metrics subscription"
    raise RefusedRequestError(ErrorCode.INVALID_REQUEST, f"{what} name must not be empty")


def _of_topic(seen: SeenSettings, settings: Mapping[str, str]) -> list[ConfigEntry]:
    entries = topic_entries(seen, settings)
    first = [entry for entry in entries if entry.name.startswith("internal.")]
    rest = [entry for entry in entries if not entry.name.startswith("internal.")]
    return in_shown_order(first) + in_shown_order(rest)


def _topic_settings(broker: Broker, name: str) -> Mapping[str, str]:
    topic = broker.topics.get(name)
    if topic is not None:
        return topic.settings
    flaw = flaw_of(name)
    if flaw is not None:
        raise RefusedRequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, flaw)
    raise RefusedRequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")


def _shown(
    entry: ConfigEntry, request: DescribeConfigsRequest
) -> DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult:
    from kafka.protocol.admin.configs import DescribeConfigsResponse

    entry_class = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult
    synonyms = entry.synonyms if request.include_synonyms else ()
    return entry_class(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            entry_class.DescribeConfigsSynonym(
                name=synonym.name, value=synonym.value, source=synonym.source
            )
            for synonym in synonyms
        ],
        config_type=entry.type,
        documentation=entry.doc if request.include_documentation else None,
    )
