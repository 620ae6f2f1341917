"""The settings of access control, and who is there first."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.auth.settings import LOCAL_PROVIDERS, AccessSettings, Credentials
from logstore.compat.rocketmq.auth.signatures import signed_fields
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.segments.rocketmq.settings.broker_config import BrokerSettings
from logstore.segments.rocketmq.settings.java_config import ConfigError
from logstore.segments.rocketmq.tables.access import User
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.auth.access_stage import Stage, signed
from tests.compat.rocketmq.broker_peer import a_broker

INNER = '{"accessKey":"inner","secretKey":"inner-pw"}'


def test_defaults() -> None:
    """Nobody is asked for anything, and there is no place for users."""
    found = AccessSettings.of(BrokerSettings())
    assert not any((found.authenticates, found.authorizes, found.has_users, found.has_acls))
    assert found.first_user is found.inner_client is None
    assert not found.authentication_memory.is_on
    assert found.cluster == "DefaultCluster"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("authenticationProvider", "com.example.Mine"),
        ("authorizationProvider", "com.example.Mine"),
        ("authenticationMetadataProvider", "com.example.Mine"),
        ("authorizationMetadataProvider", "com.example.Mine"),
        ("authenticationStrategy", "com.example.Mine"),
        ("authorizationStrategy", "com.example.Mine"),
        ("initAuthenticationUser", "root"),
        ("initAuthenticationUser", "[]"),
        ("initAuthenticationUser", '{"username":"root"}'),
        ("innerClientAuthenticationCredentials", '{"accessKey":" ","secretKey":"x"}'),
    ],
)
def test_what_is_not_there_is_refused(name: str, text: str) -> None:
    """A broker does not start with classes that nobody has here, or with half a user."""
    with pytest.raises(ConfigError, match=name):
        a_broker(settings={**LOCAL_PROVIDERS, "authenticationEnabled": "true", name: text})


def test_the_first_users_are_super_users() -> None:
    """They are made once: a password that was changed since stays."""
    host = SimulatedHost(clock=ManualClock())
    stage = Stage(host, innerClientAuthenticationCredentials=INNER)
    assert stage.broker.access.table.users == {
        "root": User("root", "root-pw", "Super", "enable"),
        "inner": User("inner", "inner-pw", "Super", "enable"),
    }
    stage.administrate(RequestCode.AUTH_UPDATE_USER, {"password": "other"}, username="root")
    stage.broker.close()
    stage = Stage(host)
    assert stage.told(("root", "other"), 28)[0] == 0


def test_first_users_are_there_before_anybody_must_sign() -> None:
    """A broker that asks nobody has them already, and still no guard."""
    broker = a_broker(
        settings={
            **LOCAL_PROVIDERS,
            "initAuthenticationUser": '{"username":"root","password":"x"}',
        }
    )
    assert list(broker.access.table.users) == ["root"]
    assert broker.guarding is None


def test_requests_to_other_servers_are_signed() -> None:
    """As the inner client, with a security token if it has one."""
    broker = a_broker(settings={**LOCAL_PROVIDERS, "innerClientAuthenticationCredentials": INNER})
    assert broker.sign is not None
    assert broker.sign({"a": "b"}, b"body") == signed(("inner", "inner-pw"), {"a": "b"}, b"body")
    assert a_broker().sign is None
    with_token = signed_fields(Credentials("inner", "inner-pw", "token"), {"a": "b"}, b"")
    assert with_token == signed(("inner", "inner-pw"), {"a": "b", "SecurityToken": "token"})


def test_users_of_a_real_broker_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """They stand in RocksDB, which is not read here: a warning says so."""
    host = SimulatedHost(clock=ManualClock())
    a_broker(host).close()
    host.fs.make_directory("/store/config/users")
    Stage(host)
    assert "/store/config/users: users of a real broker, in RocksDB, are not read" in caplog.text
