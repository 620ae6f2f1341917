"""What a broker refuses: what brokers say among themselves, voters and tokens."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.schemas import ZERO_UUID
from tests.interop.drawn.world import World

#: what brokers and controllers say to each other; a broker does not serve it
AMONG_THEMSELVES = (
    "LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown", "Vote",
    "BeginQuorumEpoch", "EndQuorumEpoch", "AlterPartition", "Envelope", "FetchSnapshot",
    "BrokerRegistration", "BrokerHeartbeat", "AllocateProducerIds", "ControllerRegistration",
    "AssignReplicasToDirs", "UpdateRaftVoter",
)  # fmt: skip


def among_themselves(world: World) -> None:
    """Say what only a broker says, in the first version."""
    world.twin.ask(world.chance.choice(AMONG_THEMSELVES), 0, {}, "among themselves")


def unregister_broker(world: World) -> None:
    """Forget a broker that is none."""
    world.twin.ask("UnregisterBroker", 0, {"BrokerId": world.pick(2, 3, 99, -1, 2**31 - 1)})


def voter_of(world: World) -> dict[str, Any]:
    """Draw a voter, and the cluster to which it is said to belong."""
    return {
        "ClusterId": world.pick(None, "another", ""),
        "VoterId": world.pick(1, 2, 3, -1),
        "VoterDirectoryId": world.pick(ZERO_UUID, b"\1" * 16),
    }


def add_voter(world: World) -> None:
    """Have somebody vote, which nobody can."""
    names = world.pick(["CONTROLLER"], ["CONTROLLER"], ["PLAINTEXT"], [], ["CONTROLLER"] * 2)
    listeners = [{"Name": name, "Host": "localhost", "Port": 9} for name in names]
    body = voter_of(world) | {"TimeoutMs": 1000, "Listeners": listeners}
    world.ask("AddRaftVoter", body)


def remove_voter(world: World) -> None:
    """Have somebody vote no longer, which nobody can."""
    world.ask("RemoveRaftVoter", voter_of(world))


def delegation_tokens(world: World) -> None:
    """Ask for tokens, to renew or to end them: of who has not said who it is that is refused."""
    owner = {"OwnerPrincipalType": "User", "OwnerPrincipalName": "a"}
    renewers = world.pick([], [{"PrincipalType": "User", "PrincipalName": "b"}])
    token = world.pick(b"token", b"")
    owners = world.pick(None, [], [{"PrincipalType": "User", "PrincipalName": "a"}])
    create = world.version("CreateDelegationToken")
    api, version, body = world.pick(
        ("CreateDelegationToken", create,
         {"Renewers": renewers, "MaxLifetimeMs": world.pick(-1, 1000)}
         | (owner if create >= 3 and world.likely(0.5) else {})),
        ("RenewDelegationToken", None, {"Hmac": token, "RenewPeriodMs": world.pick(-1, 5)}),
        ("ExpireDelegationToken", None, {"Hmac": token, "ExpiryTimePeriodMs": world.pick(-1, 5)}),
        ("DescribeDelegationToken", None, {"Owners": owners}),
    )  # fmt: skip
    world.ask(api, body, version)
