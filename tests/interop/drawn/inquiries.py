"""What administrators ask, out to the edges: cursors, filters, times, and the same thing twice."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.configs import BROKER, GROUP, LOGGER, METRICS, TOPIC
from tests.interop.drawn.groups import any_group
from tests.interop.drawn.records import FIRST_TIME_MS
from tests.interop.drawn.transactions import producer_of, transactional_id
from tests.interop.drawn.world import Topic, World

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
#: transactions' states as they are spelled, and as they are not
STATES = (
    "Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "PrepareCommit", "PrepareAbort",
    "PrepareEpochFence", "Dead", "ongoing", "EMPTY", "complete_commit", " Ongoing", "", "Nonsense",
)  # fmt: skip
#: what stands behind a session's prefix in a pattern, right or wrong
ENDINGS = (
    ".*", "-x1", "-x[12]", "-X1", "-x\\d", "-x(?:0|1)", "-(?P<n>x.)", "-x1|", "-x\\Q1\\E", "-x1$",
    "-[[:alpha:]]1", "-\\pL1", "(", "[a", "{1", ")", "*", "**", "a**", "\\", "(?=x)", "-x{0,1001}",
    "(?i)-X1", "-(x)\\1", "\\z", "\\Z", "(?P<n", "[b-a]", "(?q)", "\\8", "-x?+",
)  # fmt: skip
GROUP_STATES = (
    "Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Assigning",
    "Reconciling", "NotReady", "Unknown", "stable", "EMPTY", "preparing_rebalance", " Empty", "",
    "rot", "completingrebalance", "NOTREADY",
)  # fmt: skip
GROUP_TYPES = (
    "classic", "consumer", "share", "streams", "unknown", "Classic", "CONSUMER", "sHaRe", "Unknown",
    " share", "", "rot",
)  # fmt: skip
TIMES = (
    -1, -2, -3, -4, -5, -6, -7, -8, -(2**63), INT64_MAX, 0, 1, FIRST_TIME_MS, FIRST_TIME_MS - 1,
    FIRST_TIME_MS + 10, FIRST_TIME_MS + 60_000, FIRST_TIME_MS + 86_400_000,
)  # fmt: skip
#: kinds of what has settings, and what there is not
KINDS = (0, 1, TOPIC, 3, BROKER, 5, LOGGER, METRICS, GROUP, 64, 127, -1, -128)


def numbers(world: World, topic: Topic) -> list[int]:
    """Draw partitions of a topic: none, some, all, one twice, or one that is not there."""
    found = [world.partition(topic) for _ in range(world.pick(0, 1, 1, 1, 2, 3))]
    if world.likely(0.2):
        found = list(range(topic.partitions + world.pick(0, 1)))
    if found and world.likely(0.2):
        found.append(world.chance.choice(found))
    return found


def places(world: World, topic_field: str, partitions_field: str) -> list[dict[str, Any]]:
    """Draw topics with partitions, now and then a topic in two places."""
    topics = [world.topic() for _ in range(world.pick(0, 1, 1, 1, 2, 3))]
    if topics and world.likely(0.15):
        topics.append(world.chance.choice(topics))
    return [{topic_field: one.name, partitions_field: numbers(world, one)} for one in topics]


def doubled(world: World, items: list[Any]) -> list[Any]:
    """Return some things, now and then one of them twice."""
    if items and world.likely(0.2):
        return [*items, world.chance.choice(items)]
    return items


def some(world: World, *choices: Any) -> list[Any]:
    """Draw none, one or more of some, the same twice or not."""
    return [world.chance.choice(choices) for _ in range(world.pick(0, 1, 1, 1, 2, 3))]


def topic_partitions(world: World) -> None:
    """Page through topics from a cursor anywhere before, at, between and behind them."""
    topics = [world.topic() for _ in range(world.pick(0, 1, 1, 1, 2, 2, 3, 3, 4))]
    topics = doubled(world, topics)
    cursor = None
    if world.likely(0.65):
        at = world.chance.choice(topics) if topics and world.likely(0.7) else world.topic()
        name = world.pick(at.name, at.name, at.name, at.name[:-1], f"{at.name}0", "", "~", "A")
        index = world.pick(
            0, 0, 1, 2, at.partitions - 1, at.partitions, at.partitions + 1, -1, -2, INT32_MAX,
            INT32_MAX - 1, -(2**31),
        )  # fmt: skip
        cursor = {"TopicName": name, "PartitionIndex": index}
    body = {
        "Topics": [{"Name": one.name} for one in topics],
        "ResponsePartitionLimit": world.pick(1, 1, 2, 3, 4, 5, 0, -1, 2000, 2001, INT32_MAX),
        "Cursor": cursor,
    }
    world.ask("DescribeTopicPartitions", body)


def transactions(world: World) -> None:
    """List transactions by several filters at once, patterns that are none among them."""
    version = world.version("ListTransactions")
    identities = [producer_of(world).id for _ in range(world.pick(0, 0, 0, 1, 2))]
    body: dict[str, Any] = {
        "StateFilters": some(world, *STATES) if world.likely(0.5) else [],
        "ProducerIdFilters": doubled(world, identities),
    }
    if version >= 1:
        body["DurationFilter"] = world.pick(-1, -1, -2, 0, 0, 86_400_000, INT64_MAX, -(2**63))
    if version >= 2:
        ending = world.pick(*ENDINGS)
        body["TransactionalIdPattern"] = world.pick(
            None, "", world.prefix, f"{world.prefix}-x.", f"{world.prefix}{ending}", ending
        )
    world.ask("ListTransactions", body, version)


def transactions_by_name(world: World) -> None:
    """Ask for several transactions, one of them twice or not."""
    names = [transactional_id(world) for _ in range(world.pick(0, 1, 2, 3))]
    world.ask("DescribeTransactions", {"TransactionalIds": doubled(world, names)})


def producers(world: World) -> None:
    """Ask who has written to many partitions."""
    world.ask("DescribeProducers", {"Topics": places(world, "Name", "PartitionIndexes")})


def log_dirs(world: World) -> None:
    """Ask what stands where, of everything now and then."""
    topics = None if world.likely(0.1) else places(world, "Topic", "Partitions")
    world.ask("DescribeLogDirs", {"Topics": topics})


def reassignments(world: World) -> None:
    """Ask what is being moved."""
    topics = None if world.likely(0.2) else places(world, "Name", "PartitionIndexes")
    body = {"Topics": topics, "TimeoutMs": world.pick(5000, 5000, 5000, INT32_MAX)}
    world.ask("ListPartitionReassignments", body)


def offsets(world: World) -> None:
    """Ask for offsets by time: all the times that mean something else, by any kind of reader."""
    items = []
    for topic in doubled(world, [world.topic() for _ in range(world.pick(1, 1, 2))]):
        partitions = [
            {
                "PartitionIndex": number,
                "CurrentLeaderEpoch": world.pick(-1, -1, -1, -1, 0, 1, -2, INT32_MAX),
                "Timestamp": world.pick(*TIMES),
            }
            for number in numbers(world, topic)
        ]
        items.append({"Name": topic.name, "Partitions": partitions})
    body = {
        "ReplicaId": world.pick(*[-1] * 6, -2, -3, 0, 1, 2),
        "IsolationLevel": world.pick(0, 0, 1, 1, 2, -1),
        "Topics": items,
        "TimeoutMs": 1000,
    }
    world.ask("ListOffsets", body)


def epochs(world: World) -> None:
    """Ask where epochs end."""
    items = []
    for topic in doubled(world, [world.topic() for _ in range(world.pick(0, 1, 1, 2))]):
        partitions = [
            {
                "Partition": number,
                "CurrentLeaderEpoch": world.pick(-1, -1, 0, 0, 1, -2, INT32_MAX),
                "LeaderEpoch": world.pick(0, 0, 0, 1, -1, -2, 5, INT32_MAX),
            }
            for number in numbers(world, topic)
        ]
        items.append({"Topic": topic.name, "Partitions": partitions})
    body = {"ReplicaId": world.pick(-1, -1, -2, -3, 0, 1, 2), "Topics": items}
    world.ask("OffsetForLeaderEpoch", body)


def groups_by_filter(world: World) -> None:
    """List groups by states and types, as they are spelled and as they are not."""
    version = world.version("ListGroups")
    body: dict[str, Any] = {}
    if version >= 4:
        body["StatesFilter"] = some(world, *GROUP_STATES) if world.likely(0.7) else []
    if version >= 5:
        body["TypesFilter"] = some(world, *GROUP_TYPES) if world.likely(0.7) else []
    world.ask("ListGroups", body, version)


def cluster(world: World) -> None:
    """Ask who belongs to the cluster, by all kinds of endpoint."""
    body = {
        "IncludeClusterAuthorizedOperations": world.likely(0.4),
        "EndpointType": world.pick(1, 1, 0, 3, -1, 127, -128),
        "IncludeFencedBrokers": world.likely(0.5),
    }
    world.ask("DescribeCluster", body)


def settings_of_anything(world: World) -> None:
    """Ask for settings of what has some and of what cannot have any, by keys that come twice."""
    items = []
    for _ in range(world.pick(0, 1, 1, 1, 2, 3)):
        kind = world.pick(*KINDS, TOPIC, TOPIC, GROUP, METRICS)
        names: list[Any] = [
            "",
            "x",
            "1",
            " 1",
            "01",
            "-1",
            "2",
            "+1",
            "2147483648",
            world.topic_name(),
        ]
        if kind in {GROUP, METRICS}:
            names += [world.numbered("group"), world.numbered("consumer"), world.numbered("share")]
        if kind == TOPIC:
            names += [world.topic().name for _ in range(6)]
        keys: Any = some(
            world, "retention.ms", "cleanup.policy", "interval.ms", "min.insync.replicas", "",
            "no.such", "consumer.session.timeout.ms", "RETENTION.MS", "num.io.threads",
            "log.retention.ms", "match",
        )  # fmt: skip
        if kind not in {BROKER, LOGGER} and world.likely(0.3):
            keys = None
        if kind in {BROKER, LOGGER} and (not keys or kind == LOGGER):
            keys = ["no.such", ""]  # of a broker all tell where it is, and loggers are its own
        items.append(
            {"ResourceType": kind, "ResourceName": world.pick(*names), "ConfigurationKeys": keys}
        )
    body = {
        "Resources": doubled(world, items),
        "IncludeSynonyms": world.likely(0.5),
        "IncludeDocumentation": world.likely(0.2),
    }
    world.ask("DescribeConfigs", body)


def resources(world: World) -> None:
    """Ask what has settings, by kinds that there are and others, one of them twice or not."""
    kinds = doubled(world, some(world, *KINDS))
    world.ask("ListConfigResources", {"ResourceTypes": kinds})


def quotas(world: World) -> None:
    """Ask for limits by kinds in any combination, one twice or not, matched in any way."""
    components = []
    kinds = some(world, "user", "user", "client-id", "client-id", "ip", "colour", "", "User")
    for kind in kinds if world.likely(0.4) else list(dict.fromkeys(kinds)):
        match = world.pick(0, 0, 0, 1, 1, 2, 2, 3, -1)
        name = world.pick(
            world.numbered("user"), world.numbered("client"), "10.0.0.1", "", "<default>", None
        )
        if match != 0 and world.likely(0.9):
            name = None
        components.append({"EntityType": kind, "MatchType": match, "Match": name})
    world.ask("DescribeClientQuotas", {"Components": components, "Strict": world.likely(0.4)})


def passwords(world: World) -> None:
    """Ask who has passwords: of some, of one twice, of nobody, of everybody."""
    names = [world.pick(world.numbered("user"), world.numbered("user"), "nobody", "") for _ in "ab"]
    users: Any = [{"Name": one} for one in doubled(world, names[: world.pick(0, 1, 1, 2)])]
    world.ask("DescribeUserScramCredentials", {"Users": None if world.likely(0.1) else users})


def quorum(world: World) -> None:
    """Ask for voters: of the metadata and of what has none, of a partition twice or not."""
    items = []
    for _ in range(world.pick(0, 1, 1, 1, 2)):
        name = world.pick(*["__cluster_metadata"] * 4, "", world.topic_name())
        indexes = doubled(world, some(world, 0, 0, 0, 1, -1, INT32_MAX))
        partitions = [{"PartitionIndex": index} for index in indexes]
        items.append({"TopicName": name, "Partitions": partitions})
    world.ask("DescribeQuorum", {"Topics": doubled(world, items)})


def coordinators(world: World) -> None:
    """Ask who coordinates several, one of them twice or not, of a kind or of none."""
    version = world.version("FindCoordinator")
    keys = some(
        world, any_group(world), transactional_id(world), "", "x", "g:AAAAAAAAAAAAAAAAAAAAAA:0",
        "g:AAAAAAAAAAAAAAAAAAAAAA:x", "g:AAAAAAAAAAAAAAAAAAAAAA:-1", ":AAAAAAAAAAAAAAAAAAAAAA:0",
        "g:h:AAAAAAAAAAAAAAAAAAAAAA:0", "g:AAAA:0", "g:AAAAAAAAAAAAAAAAAAAAAA:99999999999",
    )  # fmt: skip
    kind = world.pick(0, 0, 1, 1, 2, 2, 3, -1, 127, -128)
    body: dict[str, Any] = {"CoordinatorKeys": doubled(world, keys)}
    if version < 4:
        body = {"Key": keys[0] if keys else ""}
    if version >= 1:
        body["KeyType"] = kind
    world.ask("FindCoordinator", body, version)
