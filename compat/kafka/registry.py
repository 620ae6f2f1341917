"""
Which APIs the broker has, in which versions: one table, read by everyone.

ApiVersions answers from it, the dispatcher looks handlers up in it and the test of the coverage
page compares with it, so that the three cannot drift apart.

A handler stands in the file of its key, ``apis/api_NN_name.py``, as ``handle``, and is imported
when somebody asks for the first time: a broker that is started for one test serves a few APIs.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

#: A handler of decoded messages: (broker, client, request message) -> response message or Later.
MessageHandler = Callable[["Broker", "Client", Any], Any]


class RawRequest(NamedTuple):
    """A request that its handler reads by itself. `data` is valid during the call only."""

    version: int
    correlation_id: int
    data: memoryview
    position: int
    is_flexible: bool


#: What a raw handler returns: whole frames, None for "no answer", or a promise of frames.
RawAnswer = "list[Chunk] | Later[list[Chunk]] | None"
RawHandler = Callable[["Broker", "Client", RawRequest], "list[Chunk] | Later[list[Chunk]] | None"]

_APIS_PACKAGE = "logstore.compat.kafka.apis"
_WORD_START = re.compile(r"\B[A-Z]")


def _version_min_of(api: Api) -> int:
    return api.version_min


@attrs.define(eq=False, repr=False)
class Api:
    """
    One entry of the table. It has one kind of handler, which at first only stands in for it.

    With a library's module for its messages the handler gets them decoded; without one it reads
    the request and writes the response by hand: what is asked often, or first.
    """

    key: int
    name: str
    version_min: int
    version_max: int
    #: the first flexible version: request header v2, response header v1
    flexible_from: int = attrs.field(kw_only=True)
    #: module below ``kafka.protocol`` that has ``<name>Request`` and ``<name>Response``
    module: str = attrs.field(default="", kw_only=True)
    #: what ApiVersions says instead of `version_min` (Produce: old clients look for 0)
    advertised_min: int = attrs.field(
        default=attrs.Factory(_version_min_of, takes_self=True), kw_only=True
    )
    handle: MessageHandler | None = attrs.field(default=None, kw_only=True)
    handle_raw: RawHandler | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.handle is None and self.handle_raw is None:
            self._set_handler(self._load_and_handle)

    def is_flexible(self, version: int) -> bool:
        """Tell whether headers of this version carry tagged fields."""
        return version >= self.flexible_from

    @property
    def file(self) -> str:
        """The import name of the API's file."""
        words = _WORD_START.sub(lambda start: f"_{start[0]}", self.name).lower()
        return f"{_APIS_PACKAGE}.api_{self.key:02}_{words}"

    def load(self) -> Callable[..., Any]:
        """Import the API's file; from now on its handler is asked without a detour."""
        handler: Callable[..., Any] = importlib.import_module(self.file).handle
        self._set_handler(handler)
        return handler

    def _load_and_handle(self, *question: Any) -> Any:
        """Stand in for the handler, once."""
        return self.load()(*question)

    def _set_handler(self, handler: Callable[..., Any]) -> None:
        if self.module:
            self.handle = handler
        else:
            self.handle_raw = handler


_TABLE = (
    Api(0, "Produce", 3, 13, flexible_from=9, advertised_min=0),
    Api(1, "Fetch", 4, 18, flexible_from=12),
    Api(2, "ListOffsets", 1, 11, flexible_from=6),
    Api(3, "Metadata", 0, 13, flexible_from=9),
    Api(8, "OffsetCommit", 2, 10, flexible_from=8),
    Api(9, "OffsetFetch", 1, 10, flexible_from=6),
    Api(10, "FindCoordinator", 0, 6, flexible_from=3, module="metadata.find_coordinator"),
    Api(11, "JoinGroup", 0, 9, flexible_from=6, module="consumer.group"),
    Api(12, "Heartbeat", 0, 4, flexible_from=4, module="consumer.group"),
    Api(13, "LeaveGroup", 0, 5, flexible_from=4, module="consumer.group"),
    Api(14, "SyncGroup", 0, 5, flexible_from=4, module="consumer.group"),
    Api(15, "DescribeGroups", 0, 6, flexible_from=5),
    Api(16, "ListGroups", 0, 5, flexible_from=3),
    Api(17, "SaslHandshake", 0, 1, flexible_from=2, module="sasl"),
    Api(18, "ApiVersions", 0, 4, flexible_from=3),
    Api(19, "CreateTopics", 2, 7, flexible_from=5),
    Api(20, "DeleteTopics", 1, 6, flexible_from=4, module="admin.topics"),
    Api(21, "DeleteRecords", 0, 2, flexible_from=2, module="admin.topics"),
    Api(22, "InitProducerId", 0, 5, flexible_from=2),
    Api(23, "OffsetForLeaderEpoch", 2, 4, flexible_from=4, module="consumer.offsets"),
    Api(24, "AddPartitionsToTxn", 0, 5, flexible_from=3, module="producer.transaction"),
    Api(25, "AddOffsetsToTxn", 0, 4, flexible_from=3, module="producer.transaction"),
    Api(26, "EndTxn", 0, 5, flexible_from=3, module="producer.transaction"),
    Api(27, "WriteTxnMarkers", 1, 2, flexible_from=1, module="producer.transaction"),
    Api(28, "TxnOffsetCommit", 0, 5, flexible_from=3, module="producer.transaction"),
    Api(29, "DescribeAcls", 1, 3, flexible_from=2, module="admin.acl"),
    Api(30, "CreateAcls", 1, 3, flexible_from=2, module="admin.acl"),
    Api(31, "DeleteAcls", 1, 3, flexible_from=2, module="admin.acl"),
    Api(32, "DescribeConfigs", 1, 4, flexible_from=4, module="admin.configs"),
    Api(33, "AlterConfigs", 0, 2, flexible_from=2, module="admin.configs"),
    Api(34, "AlterReplicaLogDirs", 1, 2, flexible_from=2, module="admin.cluster"),
    Api(35, "DescribeLogDirs", 1, 5, flexible_from=2, module="admin.cluster"),
    Api(36, "SaslAuthenticate", 0, 2, flexible_from=2, module="sasl"),
    Api(37, "CreatePartitions", 0, 3, flexible_from=2, module="admin.topics"),
    Api(38, "CreateDelegationToken", 1, 3, flexible_from=2),
    Api(39, "RenewDelegationToken", 1, 2, flexible_from=2),
    Api(40, "ExpireDelegationToken", 1, 2, flexible_from=2),
    Api(41, "DescribeDelegationToken", 1, 3, flexible_from=2),
    Api(42, "DeleteGroups", 0, 2, flexible_from=2, module="admin.groups"),
    Api(43, "ElectLeaders", 0, 2, flexible_from=2, module="admin.topics"),
    Api(44, "IncrementalAlterConfigs", 0, 1, flexible_from=1, module="admin.configs"),
    Api(45, "AlterPartitionReassignments", 0, 1, flexible_from=0, module="admin.topics"),
    Api(46, "ListPartitionReassignments", 0, 0, flexible_from=0, module="admin.topics"),
    Api(47, "OffsetDelete", 0, 0, flexible_from=1, module="consumer.group"),
    Api(48, "DescribeClientQuotas", 0, 1, flexible_from=1, module="admin.client_quotas"),
    Api(49, "AlterClientQuotas", 0, 1, flexible_from=1, module="admin.client_quotas"),
    Api(50, "DescribeUserScramCredentials", 0, 0, flexible_from=0, module="admin.users"),
    Api(51, "AlterUserScramCredentials", 0, 0, flexible_from=0, module="admin.users"),
    Api(55, "DescribeQuorum", 0, 2, flexible_from=0, module="admin.cluster"),
    Api(57, "UpdateFeatures", 0, 2, flexible_from=0, module="admin.cluster"),
    Api(60, "DescribeCluster", 0, 2, flexible_from=0, module="admin.cluster"),
    Api(61, "DescribeProducers", 0, 0, flexible_from=0, module="admin.transactions"),
    Api(64, "UnregisterBroker", 0, 0, flexible_from=0),
    Api(65, "DescribeTransactions", 0, 0, flexible_from=0, module="admin.transactions"),
    Api(66, "ListTransactions", 0, 2, flexible_from=0, module="admin.transactions"),
    Api(68, "ConsumerGroupHeartbeat", 0, 1, flexible_from=0),
    Api(69, "ConsumerGroupDescribe", 0, 1, flexible_from=0),
    Api(74, "ListConfigResources", 0, 1, flexible_from=0, module="admin.configs"),
    Api(75, "DescribeTopicPartitions", 0, 0, flexible_from=0),
    Api(76, "ShareGroupHeartbeat", 1, 1, flexible_from=0),
    Api(77, "ShareGroupDescribe", 1, 1, flexible_from=0),
    Api(78, "ShareFetch", 1, 2, flexible_from=0),
    Api(79, "ShareAcknowledge", 1, 2, flexible_from=0),
    Api(80, "AddRaftVoter", 0, 1, flexible_from=0),
    Api(81, "RemoveRaftVoter", 0, 0, flexible_from=0),
    Api(83, "InitializeShareGroupState", 0, 0, flexible_from=0),
    Api(84, "ReadShareGroupState", 0, 0, flexible_from=0),
    Api(85, "WriteShareGroupState", 0, 1, flexible_from=0),
    Api(86, "DeleteShareGroupState", 0, 0, flexible_from=0),
    Api(87, "ReadShareGroupStateSummary", 0, 1, flexible_from=0),
    Api(88, "StreamsGroupHeartbeat", 0, 0, flexible_from=0),
    Api(89, "StreamsGroupDescribe", 0, 0, flexible_from=0),
    Api(90, "DescribeShareGroupOffsets", 0, 1, flexible_from=0),
    Api(91, "AlterShareGroupOffsets", 0, 0, flexible_from=0),
    Api(92, "DeleteShareGroupOffsets", 0, 0, flexible_from=0),
)

APIS: dict[int, Api] = {api.key: api for api in _TABLE}

#: (key, version) -> the entry that serves it, if any
FindApi = Callable[[int, int], Api | None]
