"""Settings are asked for and changed: of topics, brokers, groups and subscriptions to metrics."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.topics import BAD_CONFIGS, GOOD_CONFIGS
from tests.interop.drawn.world import World

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
#: Settings of brokers that neither slow down nor end the sessions behind them.
OF_BROKERS: tuple[tuple[str, str | None], ...] = (
    ("message.max.bytes", "1048600"),
    ("message.max.bytes", "-1"),
    ("background.threads", "11"),
    ("background.threads", "0"),
    ("background.threads", "100"),
    ("log.retention.ms", "-1"),
    ("log.segment.bytes", "1073741824"),
    ("log.segment.bytes", "1"),
    ("log.cleanup.policy", "delete"),
    ("log.cleanup.policy", "rot"),
    ("compression.type", "producer"),
    ("min.insync.replicas", "1"),
    ("unclean.leader.election.enable", "false"),
    ("unclean.leader.election.enable", "perhaps"),
    ("max.connections", "5000"),
    ("node.id", "7"),
    ("broker.id", "7"),
    ("num.partitions", "2"),
    ("auto.create.topics.enable", "true"),
    ("no.such.setting", "1"),
    ("", "1"),
    ("log.cleaner.backoff.ms", "16000"),
    ("num.io.threads", "8"),
    ("message.max.bytes", None),
)
OF_GROUPS: tuple[tuple[str, str | None], ...] = (
    ("consumer.session.timeout.ms", "45000"),
    ("consumer.session.timeout.ms", "46000"),
    ("consumer.session.timeout.ms", "1"),
    ("consumer.heartbeat.interval.ms", "5000"),
    ("consumer.heartbeat.interval.ms", "100000"),
    ("share.session.timeout.ms", "50000"),
    ("share.record.lock.duration.ms", "30000"),
    ("share.record.lock.duration.ms", "5"),
    ("share.auto.offset.reset", "earliest"),
    ("share.auto.offset.reset", "middle"),
    ("share.auto.offset.reset", "by_duration:PT1H"),
    ("share.isolation.level", "read_committed"),
    ("share.isolation.level", "none"),
    ("share.heartbeat.interval.ms", "5000"),
    ("share.delivery.count.limit", "5"),
    ("share.delivery.count.limit", "1000"),
    ("streams.num.standby.replicas", "1"),
    ("streams.num.standby.replicas", "100"),
    ("streams.session.timeout.ms", "45000"),
    ("no.such", "1"),
    ("consumer.session.timeout.ms", None),
    ("share.session.timeout.ms", "soon"),
)
OF_METRICS: tuple[tuple[str, str | None], ...] = (
    ("interval.ms", "1000"),
    ("interval.ms", "10"),
    ("interval.ms", "often"),
    ("metrics", "org.apache.kafka.producer."),
    ("metrics", ""),
    ("match", "client_id=a.*"),
    ("match", "client_software_name=b,client_software_version=1"),
    ("match", "colour=red"),
    ("match", "client_id"),
    ("metrics", None),
    ("no.such", "1"),
)
OF_LOGGERS: tuple[tuple[str, str | None], ...] = (
    ("kafka.server.KafkaApis", "INFO"),
    ("kafka.server.KafkaApis", "LOUD"),
    ("no.such.logger", "INFO"),
)
LISTS = (
    ("cleanup.policy", "compact"), ("cleanup.policy", "delete"), ("cleanup.policy", "rot"),
    ("leader.replication.throttled.replicas", "0:1"), ("retention.ms", "5"),
)  # fmt: skip


def resource(world: World) -> tuple[int, str, tuple[tuple[str, str | None], ...]]:
    """Draw something that has settings, and some of them."""
    kind = world.pick(*[TOPIC] * 5, BROKER, BROKER, GROUP, GROUP, METRICS)
    if world.likely(0.04):
        return world.pick(0, 1, 3, 64, -1), "x", GOOD_CONFIGS
    if kind == TOPIC:
        return kind, world.topic_name(), BAD_CONFIGS if world.likely(0.25) else GOOD_CONFIGS
    if kind == BROKER:
        name = world.pick("", "1", "1", "1", "2", "x") if world.likely(0.5) else "1"
        return kind, name, OF_BROKERS
    if kind == GROUP:
        return kind, "" if world.likely(0.1) else world.numbered("group"), OF_GROUPS
    return kind, "" if world.likely(0.1) else world.numbered("metrics"), OF_METRICS


def each_once(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is asked, of a resource once only: a real broker does not answer otherwise."""
    return list({(one["ResourceType"], one["ResourceName"]): one for one in items}.values())


def alter(world: World) -> None:
    """Replace all settings of something."""
    items = []
    for _ in range(world.pick(1, 1, 2)):
        kind, name, known = resource(world)
        if kind == BROKER:
            continue  # what is left out would be reset, by which sessions at once hinder each other
        chosen = [world.chance.choice(known) for _ in range(world.pick(0, 1, 1, 2))]
        settings = [{"Name": key, "Value": value} for key, value in chosen]
        items.append({"ResourceType": kind, "ResourceName": name, "Configs": settings})
    world.ask("AlterConfigs", {"Resources": each_once(items), "ValidateOnly": world.likely(0.2)})


def alter_incrementally(world: World) -> None:
    """Set, reset, lengthen and shorten settings."""
    items = []
    for _ in range(world.pick(1, 1, 2)):
        kind, name, known = resource(world)
        settings: list[dict[str, Any]] = []
        for _ in range(world.pick(1, 1, 2)):
            key, value = world.chance.choice(known)
            operation = world.pick(*[SET] * 6, DELETE, DELETE, APPEND, SUBTRACT)
            if operation in {APPEND, SUBTRACT} and kind == TOPIC:
                key, value = world.chance.choice(LISTS)
            settings.append({"Name": key, "ConfigOperation": operation, "Value": value})
        items.append({"ResourceType": kind, "ResourceName": name, "Configs": settings})
    body = {"Resources": each_once(items), "ValidateOnly": world.likely(0.2)}
    world.ask("IncrementalAlterConfigs", body)


def describe(world: World) -> None:
    """Ask for all settings or some."""
    items = []
    for _ in range(world.pick(1, 1, 2)):
        kind, name, known = resource(world)
        keys: Any = None
        if kind == BROKER or world.likely(0.4):
            keys = list({world.chance.choice(known)[0] for _ in range(world.pick(1, 2, 3))})
        items.append({"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys})
    body = {
        "Resources": items,
        "IncludeSynonyms": world.likely(0.5),
        "IncludeDocumentation": world.likely(0.3),
    }
    world.ask("DescribeConfigs", body)


def list_resources(world: World) -> None:
    """Ask what has settings."""
    version = world.version("ListConfigResources")
    kinds = world.pick([], [METRICS], [GROUP], [BROKER], [TOPIC, GROUP], [0], [LOGGER], [99])
    world.ask("ListConfigResources", {"ResourceTypes": kinds}, version)


def alter_quotas(world: World) -> None:
    """Limit a user, a client or an address."""
    entries = []
    for _ in range(world.pick(1, 1, 2)):
        operations = []
        for _ in range(world.pick(1, 1, 2)):
            key = world.pick(
                "producer_byte_rate", "consumer_byte_rate", "request_percentage",
                "controller_mutation_rate", "connection_creation_rate", "no_such",
            )  # fmt: skip
            value = world.pick(1e9, 1e9, 2e9, 1e9 + 0.5, 0.0, -1.0) if world.likely(0.5) else 1e9
            operations.append({"Key": key, "Value": value, "Remove": world.likely(0.3)})
        entries.append({"Entity": quota_entity(world), "Ops": operations})
    body = {"Entries": entries, "ValidateOnly": world.likely(0.15)}
    world.ask("AlterClientQuotas", body)


def quota_entity(world: World) -> list[dict[str, Any]]:
    """Draw whom limits may be set for."""
    user, client = world.numbered("user"), world.numbered("client")
    entity = world.pick(
        [("user", user)], [("client-id", client)], [("user", user), ("client-id", client)],
        [("ip", "10.0.0.1")], [("ip", world.pick("not.an.address", "10.0.0.2"))],
        [("user", user), ("ip", "10.0.0.1")], [("colour", "red")], [], [("user", "")],
        [("user", user), ("user", user)],
    )  # fmt: skip
    if world.likely(0.6):
        entity = world.pick([("user", user)], [("client-id", client)])
    return [{"EntityType": kind, "EntityName": name} for kind, name in entity]


def describe_quotas(world: World) -> None:
    """Ask for limits."""
    components = []
    for kind in world.pick(["user"], ["client-id"], ["user", "client-id"], ["ip"], ["colour"], []):
        match = world.pick(0, 0, 0, 1, 2, 3)
        name = world.numbered("user" if kind == "user" else "client") if match == 0 else None
        name = "10.0.0.1" if kind == "ip" and match == 0 else name
        if world.likely(0.05):
            name = world.pick(None, "x")
        components.append({"EntityType": kind, "MatchType": match, "Match": name})
    world.ask("DescribeClientQuotas", {"Components": components, "Strict": world.likely(0.4)})


def alter_scram(world: World) -> None:
    """Give users passwords, or take them away."""
    deletions, upsertions = [], []
    for _ in range(world.pick(1, 1, 2)):
        name = world.numbered("user") if world.likely(0.92) else ""
        mechanism = world.pick(1, 2, 1, 2, 1, 0, 3)
        if world.likely(0.4):
            deletions.append({"Name": name, "Mechanism": mechanism})
        else:
            length = 32 if mechanism == 1 else 64
            upsertions.append(
                {"Name": name, "Mechanism": mechanism,
                 "Iterations": world.pick(4096, 4096, 8192, 1, 4095, 16384, 16385),
                 "Salt": world.pick(b"salt", b"salt", b""),
                 "SaltedPassword": world.pick(b"p" * length, b"p" * length, b"short", b"")}
            )  # fmt: skip
    world.ask("AlterUserScramCredentials", {"Deletions": deletions, "Upsertions": upsertions})


def describe_scram(world: World) -> None:
    """Ask who has passwords."""
    users = [{"Name": world.numbered("user")} for _ in range(world.pick(1, 1, 2))]
    if world.likely(0.2):
        users.append({"Name": world.pick("", "nobody")})
    everybody = None if world.likely(0.2) else users
    world.ask("DescribeUserScramCredentials", {"Users": everybody})
