"""
What can be done with a topic, a group or the cluster, and without an authorizer everybody may.

Clients that ask get the operations as a set of Kafka's ``AclOperation`` numbers, on the wire a
32-bit field with one bit per number; who does not ask gets the least 32-bit integer.

Source: KIP-430, ``AclEntry.supportedOperations``.
"""

from __future__ import annotations

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12

TOPIC_OPERATIONS = frozenset(
    {READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS}
)
CLUSTER_OPERATIONS = frozenset(
    {CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE}
)
GROUP_OPERATIONS = frozenset({READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS})

NOT_ASKED = -(2**31)


def bit_field(operations: frozenset[int]) -> int:
    """Return the operations as the wire has them."""
    return sum(1 << operation for operation in operations)
