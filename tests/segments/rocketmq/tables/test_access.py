"""The table of users and rules: what its file looks like, and what becomes of rules."""

from __future__ import annotations

import json

import pytest

from logstore.errors import CorruptFileError
from logstore.segments.rocketmq.tables.access import (
    CUSTOM,
    DEFAULT,
    AccessTable,
    Acl,
    Policy,
    PolicyEntry,
    User,
)
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost

ENTRY = PolicyEntry("Topic:t*", ("Pub", "Sub"), "Allow", ("10.0.0.0/8",))


def a_table(host: SimulatedHost) -> AccessTable:
    """Return a table whose file stands in ``/config``."""
    return AccessTable(host, "/config")


def test_the_file() -> None:
    """It is JSON with the fields that a broker tells of users and rules, by their keys."""
    host = SimulatedHost(clock=ManualClock())
    table = a_table(host)
    table.users = {name: User(name, "pw") for name in ("b", "a", "\u00e4")}
    table.acls = {"User:b": Acl("User:b", (Policy(CUSTOM, (ENTRY,)),))}
    table.persist()
    file = host.fs.open("/config/auth.json")
    content = json.loads(file.read(0, 1 << 20))
    file.close()
    assert [user["username"] for user in content["users"]] == ["a", "b", "\u00e4"]
    assert content["users"][0] == {
        "username": "a", "password": "pw", "userType": "Normal", "userStatus": "enable",
    }  # fmt: skip
    assert content["acls"] == [
        {
            "subject": "User:b",
            "policies": [
                {
                    "policyType": "Custom",
                    "entries": [
                        {
                            "resource": "Topic:t*", "actions": ["Pub", "Sub"],
                            "decision": "Allow", "sourceIps": ["10.0.0.0/8"],
                        }
                    ],
                }
            ],
        }
    ]  # fmt: skip
    found = a_table(host)
    assert found.load()
    assert (found.users, found.acls) == (table.users, table.acls)


@pytest.mark.parametrize(
    "text",
    [
        "[]", "{", '{"users": {}}', '{"users": [{"username": "a"}]}', '{"users": [[]]}',
        '{"acls": [{"subject": "User:a", "policies": [{"entries": [{}]}]}]}',
    ],
)  # fmt: skip
def test_damage(text: str) -> None:
    """A file that says something else is refused: nobody must get rights by it."""
    host = SimulatedHost(clock=ManualClock())
    host.fs.make_directory("/config")
    file = host.fs.open("/config/auth.json", create=True)
    file.write(0, text.encode())
    file.close()
    table = a_table(host)
    with pytest.raises(CorruptFileError, match=r"auth\.json"):
        table.load()
    assert table.users == {}
    assert table.acls == {}


def test_rules_are_joined_by_type_and_resource() -> None:
    """Entries keep their places; new ones come last."""
    one, two = PolicyEntry("Topic:a", ("Pub",), "Allow"), PolicyEntry("Topic:b", ("Pub",), "Deny")
    acl = Acl("User:u", ()).updated([Policy(CUSTOM, (one, two))])
    other = PolicyEntry("Topic:a", ("Sub",), "Deny")
    acl = acl.updated([Policy(DEFAULT, (ENTRY,)), Policy(CUSTOM, (ENTRY, other))])
    assert acl.policies == (Policy(CUSTOM, (other, two, ENTRY)), Policy(DEFAULT, (ENTRY,)))
    assert acl.policy(DEFAULT) == Policy(DEFAULT, (ENTRY,))
    without = acl.without(DEFAULT, ENTRY.resource)
    assert without.policies == (Policy(CUSTOM, (other, two, ENTRY)),)
    assert without.policy(DEFAULT) is None
    assert acl.without(CUSTOM, "Topic:none") == acl
