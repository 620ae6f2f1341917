"""SASL over a connection without a socket: the gate, the pauses, the ends of sessions."""

from __future__ import annotations

import base64
import json
import struct
import uuid
from typing import Any

import pytest

from logstore.compat.faults.request_faults import RequestFaults
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.faulty_connection import make_faulty
from logstore.segments.kafka.config_keys import ConfigError
from tests.compat.kafka.conversation import Conversation
from tests.compat.kafka.security.secured import LOGIN, PREFIX, RIGHT, SETTINGS, WRONG, Secured

METADATA: dict[str, Any] = {"topics": []}
MECHANISMS = ["OAUTHBEARER", "PLAIN", "SCRAM-SHA-256"]
PAUSE_MS = 100
AT_ONCE = {"connection.failed.authentication.delay.ms": "0"}


def test_a_client_says_who_it_is() -> None:
    """From then on it is served, under its name."""
    peer = Secured().peer()
    assert peer.name == "User:ANONYMOUS"
    peer.ask("ApiVersions", 3, {"client_software_name": "a", "client_software_version": "1"})
    found = peer.handshake("PLAIN")
    assert (found["error_code"], sorted(found["mechanisms"])) == (0, MECHANISMS)
    found = peer.token(RIGHT)
    assert (found["error_code"], found["session_lifetime_ms"]) == (0, 0)
    assert peer.name == "User:alice"
    assert peer.ask("Metadata", 1, METADATA).message["brokers"][0]["port"] == 9000


def test_a_wrong_password_is_refused_after_a_pause() -> None:
    """Nothing is served any more, and a moment after the answer the connection ends."""
    secured = Secured()
    peer = secured.peer()
    peer.handshake("PLAIN")
    assert peer.send_token(WRONG).answers() == []
    secured.pass_time(PAUSE_MS - 1)
    assert peer.answers() == []
    secured.pass_time(1)
    answer = peer.answer().message
    assert answer["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer["error_message"] == "Authentication failed: Invalid username or password"
    assert not peer.is_hung_up_on
    peer.send("Metadata", 1, METADATA)
    assert peer.connection.output == []
    secured.pass_time(50)
    assert peer.is_hung_up_on
    assert peer.connection.output == []
    assert peer.name == "User:ANONYMOUS"


def test_the_pause_can_be_left_out() -> None:
    """Then the answer comes at once."""
    peer = Secured({"connection.failed.authentication.delay.ms": "0"}).peer()
    assert peer.handshake("GSSAPI")["error_code"] == ErrorCode.UNSUPPORTED_SASL_MECHANISM


def test_the_driver_is_told_of_the_end() -> None:
    """Else nobody would hang up."""
    secured = Secured()
    peer = secured.peer()
    told: list[bool] = []
    peer.connection.on_output = lambda: told.append(peer.is_hung_up_on)
    peer.handshake("PLAIN")
    peer.send_token(WRONG)
    secured.pass_time(PAUSE_MS)
    secured.pass_time(50)
    assert told == [False, True]


def test_a_client_that_is_gone_is_not_answered() -> None:
    """The pause is over, and nothing happens."""
    secured = Secured()
    peer = secured.peer()
    peer.handshake("PLAIN")
    peer.send_token(WRONG)
    peer.connection.lost()
    secured.pass_time(1000)
    assert peer.connection.output == []


@pytest.mark.parametrize("api", ["Metadata", "SaslAuthenticate"])
def test_what_comes_too_early_ends_the_connection(api: str) -> None:
    """Without an answer."""
    peer = Secured().peer()
    fields: dict[str, Any] = METADATA if api == "Metadata" else {"auth_bytes": RIGHT}
    assert peer.send(api, 1, fields).answers() == []
    assert peer.is_hung_up_on


def test_a_request_in_place_of_a_token() -> None:
    """It is answered with 34, in its own form, and that is the end."""
    secured = Secured()
    peer = secured.peer()
    peer.handshake("PLAIN")
    peer.send("ListGroups", 3, {"states_filter": []})
    secured.pass_time(PAUSE_MS)
    assert peer.answer().message["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    secured.pass_time(50)
    assert peer.is_hung_up_on


def test_versions_are_told_once() -> None:
    """A client that did not say well what it is may ask again; one that knows them may not."""
    peer = Secured().peer()
    header = struct.pack(">hhihB", 18, 3, 7, -1, 0)
    for name, code in ((b"a b", ErrorCode.INVALID_REQUEST), (b"a", ErrorCode.NONE)):
        said = bytes([len(name) + 1]) + name + b"\x021\0"
        assert peer.raw(header + said)[8:10] == struct.pack(">h", code)
    assert peer.raw(header + said) == b""
    assert peer.is_hung_up_on


def test_versions_of_another_time_in_place_of_a_token() -> None:
    """They are refused in the first version, and a header that cannot be read is the end."""
    secured = Secured(AT_ONCE)
    peer = secured.peer()
    peer.handshake("PLAIN")
    header = struct.pack(">hhih", 18, 99, 7, -1)
    told = struct.pack(">iihi", 10, 7, ErrorCode.ILLEGAL_SASL_STATE, 0)
    assert peer.raw(header + b"\0") == told
    too_long = struct.pack(">hhih", 18, 0, 7, 80)
    for unreadable in (header, too_long):
        for is_after_handshake in (False, True):
            peer = secured.peer()
            if is_after_handshake:
                peer.handshake("PLAIN")
            assert peer.raw(unreadable) == b""
            assert peer.is_hung_up_on


@pytest.mark.parametrize(
    ("api", "version", "fields", "text"),
    [
        ("DescribeCluster", 0, {"include_cluster_authorized_operations": False},
         "Unexpected Kafka request of type DESCRIBE_CLUSTER during SASL authentication."),
        ("FindCoordinator", 3, {"key": "A", "key_type": 0},
         "Request is not valid given the current SASL state."),
        ("DeleteTopics", 6, {"topics": [{"name": "A", "topic_id": uuid.UUID(int=0)}],
         "timeout_ms": 1}, None),
    ],
)  # fmt: skip
def test_words_to_who_is_out_of_place(
    api: str, version: int, fields: dict[str, Any], text: str | None
) -> None:
    """Some answers say what happened, some what the code means, and some nothing."""
    peer = Secured(AT_ONCE).peer()
    peer.handshake("PLAIN")
    answer = peer.ask(api, version, fields).message
    (told,) = answer.get("responses", [answer])
    assert (told["error_code"], told["error_message"]) == (ErrorCode.ILLEGAL_SASL_STATE, text)


def test_everybody_out_of_place() -> None:
    """Over a question about all passwords Kafka stumbles here."""
    peer = Secured(AT_ONCE).peer()
    peer.handshake("PLAIN")
    assert peer.raw(struct.pack(">hhihB", 50, 0, 7, -1, 0) + b"\0\0") == b""
    assert peer.is_hung_up_on


def test_what_cannot_be_read_is_not_answered() -> None:
    """Also in place of a token."""
    peer = Secured(AT_ONCE).peer()
    peer.handshake("PLAIN")
    assert peer.raw(struct.pack(">hhihB", 64, 0, 7, -1, 0) + b"\0\0") == b""
    assert peer.is_hung_up_on


def test_tokens_without_requests() -> None:
    """After a handshake of version 0, as clients before 1.0 send them."""
    peer = Secured().peer()
    peer.handshake("PLAIN", 0)
    assert peer.raw(RIGHT) == bytes(4)
    assert peer.name == "User:alice"
    assert peer.ask("Metadata", 1, METADATA)
    secured = Secured()
    peer = secured.peer()
    peer.handshake("PLAIN", 0)
    assert peer.raw(WRONG) == b""
    secured.pass_time(PAUSE_MS)
    assert peer.is_hung_up_on
    peer = Secured().peer()
    peer.handshake("SCRAM-SHA-256", 0)
    assert peer.raw(b"n,,n=nobody,r=x") == b""
    assert peer.is_hung_up_on


def test_frames_are_small_until_the_client_is_known() -> None:
    """So nobody fills the memory who has not said who he is."""
    settings = {"sasl.server.max.receive.size": "2000"}
    peer = Secured(settings).peer()
    peer.connection.feed(struct.pack(">i", 2001))
    assert peer.is_hung_up_on
    peer = Secured(settings).peer().log_in()
    peer.connection.feed(struct.pack(">i", 200_001))
    assert not peer.is_hung_up_on


REAUTH = {f"{PREFIX}plain.connections.max.reauth.ms": "60000"}


def test_a_session_has_an_end() -> None:
    """Only the next request finds that out; to authenticate anew is possible even then."""
    secured = Secured(REAUTH)
    peer, late = secured.peer(), secured.peer().log_in()
    peer.handshake("PLAIN")
    assert peer.token(RIGHT)["session_lifetime_ms"] == 60_000
    secured.pass_time(60_000)
    assert peer.ask("Metadata", 1, METADATA)
    secured.pass_time(1)
    peer.log_in()
    assert peer.ask("Metadata", 1, METADATA)
    assert not late.is_hung_up_on
    assert late.send("Metadata", 1, METADATA).answers() == []
    assert late.is_hung_up_on


def test_nobody_becomes_somebody_else() -> None:
    """Neither by another name nor by another mechanism."""
    secured = Secured({**REAUTH, "connection.failed.authentication.delay.ms": "0"})
    peer = secured.peer().log_in()
    peer.handshake("PLAIN")
    found = peer.token(b"\0bob\0hidden")
    assert found["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert found["error_message"] == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    peer = secured.peer().log_in()
    assert peer.handshake("SCRAM-SHA-256")["error_code"] == 0
    assert peer.send_token(RIGHT).answers() == []
    assert peer.is_hung_up_on


def test_once_a_second_is_often_enough() -> None:
    """And where sessions have no end there is nothing to begin anew."""
    secured = Secured(REAUTH)
    peer = secured.peer().log_in().log_in()
    assert peer.handshake("PLAIN")["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    secured.pass_time(1000)
    peer.log_in()
    peer = Secured().peer().log_in()
    found = peer.handshake("PLAIN")
    assert (found["error_code"], found["mechanisms"]) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    assert peer.token(RIGHT)["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    assert peer.ask("Metadata", 1, METADATA)


def test_no_other_mechanism_to_begin_anew_by() -> None:
    """One that there is not is the end, and nobody is told those that there are."""
    peer = Secured({**REAUTH, **AT_ONCE}).peer().log_in()
    assert peer.send("SaslHandshake", 1, {"mechanism": "GSSAPI"}).answers() == []
    assert peer.is_hung_up_on


def bearer(expiry: object) -> bytes:
    """Return a bearer token of alice's that nobody has signed."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "none"}, {"sub": "alice", "exp": expiry})
    ]
    return f"n,,\1auth=Bearer {parts[0]}.{parts[1]}.\1\1".encode()


def test_a_session_that_is_over_does_not_begin_anew_too_soon() -> None:
    """It is over first."""
    secured = Secured()
    peer = secured.peer()
    for _ in range(2):
        peer.handshake("OAUTHBEARER")
        expiry = secured.host.clock.wall_ms() / 1000 + 0.5
        assert peer.token(bearer(expiry))["session_lifetime_ms"] == 500
    secured.pass_time(501)
    assert peer.send("SaslHandshake", 1, {"mechanism": "OAUTHBEARER"}).answers() == []
    assert peer.is_hung_up_on


@pytest.mark.parametrize("expiry", [1e11, 1e300])
def test_a_session_that_is_too_long(expiry: float) -> None:
    """Kafka stumbles over what does not fit into nanoseconds, unless the listener has a limit."""
    peer = Secured().peer()
    peer.handshake("OAUTHBEARER")
    assert peer.send_token(bearer(expiry)).answers() == []
    assert peer.is_hung_up_on
    peer = Secured({f"{PREFIX}oauthbearer.connections.max.reauth.ms": "60000"}).peer()
    peer.handshake("OAUTHBEARER")
    assert peer.token(bearer(expiry))["session_lifetime_ms"] == 60_000


def test_where_nobody_has_to_say_who_he_is() -> None:
    """To do so is out of place, and not the end."""
    conversation = Conversation()
    found = conversation.ask("SaslHandshake", 1, mechanism="PLAIN")
    assert (found["error_code"], found["mechanisms"]) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    found = conversation.ask("SaslAuthenticate", 2, auth_bytes=RIGHT)
    assert found["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    assert found["error_message"].startswith("SaslAuthenticate request received after")


def test_faults_strike_here_too() -> None:
    """A test may want the right password refused."""
    secured = Secured()
    faults = RequestFaults()
    make_faulty(secured.broker, faults)
    peer = secured.peer()
    faults.fail("SaslAuthenticate", "SASL_AUTHENTICATION_FAILED", times=1)
    peer.handshake("PLAIN")
    assert peer.token(RIGHT)["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert peer.token(RIGHT)["error_code"] == 0


def test_each_listener_tells_its_own_address() -> None:
    """Metadata, FindCoordinator, DescribeCluster and the settings know all of them."""
    listeners = {"listeners": "SASL_PLAINTEXT://:0,PLAINTEXT://:0"}
    secured = Secured({**listeners, "advertised.listeners": "PLAINTEXT://example:0"})
    for peer, host, port in (
        (secured.peer().log_in(), "127.0.0.1", 9000), (secured.peer(1), "example", 9001)
    ):  # fmt: skip
        (node,) = peer.ask("Metadata", 1, METADATA).message["brokers"]
        assert (node["host"], node["port"]) == (host, port)
        found = peer.ask("FindCoordinator", 1, {"key": "g", "key_type": 0}).message
        assert (found["host"], found["port"]) == (host, port)
        (node,) = peer.ask("DescribeCluster", 0, {}).message["brokers"]
        assert (node["host"], node["port"]) == (host, port)
    wanted = {"resource_type": 4, "resource_name": "1", "configuration_keys": ["listeners"]}
    asked = {"resources": [wanted], "include_synonyms": False}
    (found,) = peer.ask("DescribeConfigs", 1, asked).message["results"]
    assert (
        found["configs"][0]["value"] == "SASL_PLAINTEXT://127.0.0.1:9000,PLAINTEXT://example:9001"
    )


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({f"{PREFIX}sasl.enabled.mechanisms": ""}, "must name a mechanism"),
        ({f"{PREFIX}sasl.enabled.mechanisms": "GSSAPI"}, "must be of OAUTHBEARER, PLAIN"),
        ({f"{PREFIX}sasl.enabled.mechanisms": "SCRAM-SHA-512"}, "must be given for SCRAM-SHA-512"),
        ({f"{PREFIX}plain.sasl.jaas.config": "hush required"}, "'.hidden.'.*semicolon"),
        ({f"{PREFIX}plain.sasl.jaas.config": "hush required;"}, f"must be {LOGIN}.plain"),
        ({f"{PREFIX}plain.sasl.server.callback.handler.class": "x.Y"}, "no class of Java's"),
        (
            {
                f"{PREFIX}oauthbearer.sasl.jaas.config": f"{LOGIN}.oauthbearer."
                "OAuthBearerLoginModule required unsecuredValidatorAllowableClockSkewMs=soon;"
            },
            "AllowableClockSkewMs",
        ),
        ({"connections.max.reauth.ms": "soon"}, "connections.max.reauth.ms"),
    ],
)
def test_settings_that_are_not_enough(settings: dict[str, str], told: str) -> None:
    """The broker does not start, and says which one it is."""
    with pytest.raises(ConfigError, match=told):
        Secured({**SETTINGS, **settings})
