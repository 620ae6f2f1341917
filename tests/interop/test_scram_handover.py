"""SCRAM credentials in the metadata log: a real Kafka goes on with ours, and ours with its."""

from __future__ import annotations

import importlib
import uuid
from pathlib import Path
from typing import Any

import pytest

from logstore.segments.kafka.kafka_uuid import uuid_to_text
from tests.interop.clients import settings
from tests.interop.conftest import RunTool
from tests.interop.sasl_wire import SaslWire, ScramClient
from tests.interop.security_stage import (
    Certificates,
    Secured,
    enter_users,
    our_secured,
    real_secured,
    wait_for_all,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow]

kafka_admin: Any = importlib.import_module("confluent_kafka.admin")  # carries few types

_KIND = kafka_admin.ScramMechanism.SCRAM_SHA_256


def is_let_in(secured: Secured, name: str, password: str, mechanism: str = "SCRAM-SHA-256") -> bool:
    """Tell whether a user may come in, and the broker knows him too."""
    with SaslWire(secured.listeners["SASL"]) as wire:
        wire.handshake(mechanism)
        client = ScramClient(name, password, mechanism[6:].replace("-", "").lower())
        asked = wire.token(client.first)
        assert isinstance(asked, dict)
        if asked["error_code"]:
            return False
        answer = wire.token(client.final(asked["auth_bytes"]))
        assert isinstance(answer, dict)
        return client.is_proved(answer["auth_bytes"])


def change(secured: Secured, *asked: Any) -> None:
    """Change credentials, and wait until that is done."""
    admin = kafka_admin.AdminClient(settings(secured.listeners["PLAIN"]))
    for done in admin.alter_user_scram_credentials([*asked]).values():
        done.result(30)


def carol(password: bytes) -> Any:
    """Return a user who is new, or has a new password."""
    info = kafka_admin.ScramCredentialInfo(_KIND, 8192)
    return kafka_admin.UserScramCredentialUpsertion("carol", info, password)


def test_users_come_along(tmp_path: Path) -> None:
    """Theirs are ours, and those that came, went or changed with us are theirs again."""
    certificates = Certificates.made_in(tmp_path)
    for name in ("real", "ours"):
        (tmp_path / name).mkdir()
    with real_secured(tmp_path / "real", certificates) as real:
        enter_users(real.listeners["PLAIN"])
        change(real, carol(b"old"))
        peer = real.broker
        peer.stop()
        with our_secured(tmp_path / "ours", certificates, peer.data) as ours:
            assert is_let_in(ours, "alice", "alice-secret", "SCRAM-SHA-512")
            assert is_let_in(ours, "carol", "old")
            assert not is_let_in(ours, "nobody", "x")
            change(ours, carol(b"new"))
            change(ours, kafka_admin.UserScramCredentialDeletion("alice", _KIND))
            assert not is_let_in(ours, "alice", "alice-secret")
        peer.log.unlink()
        peer.start()
        wait_for_all(real.listeners)
        assert is_let_in(real, "carol", "new")
        assert not is_let_in(real, "carol", "old")
        assert not is_let_in(real, "alice", "alice-secret")
        assert is_let_in(real, "alice", "alice-secret", "SCRAM-SHA-512")
        assert " ERROR " not in peer.log.read_text()


def test_users_of_a_formatted_directory(tmp_path: Path, kafka_tool: RunTool) -> None:
    """Whom ``kafka-storage format --add-scram`` makes known is known to us from the start."""
    config = tmp_path / "server.properties"
    config.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={tmp_path / 'data'}\n"
        "controller.quorum.voters=1@127.0.0.1:1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
    )
    kafka_tool(
        "kafka.tools.StorageTool", "format", "-t", uuid_to_text(uuid.UUID(int=7 << 90).bytes),
        "-c", str(config), "--add-scram", "SCRAM-SHA-256=[name=alice,password=alice-secret]",
    )  # fmt: skip
    certificates = Certificates.made_in(tmp_path)
    with our_secured(tmp_path / "ours", certificates, tmp_path / "data") as ours:
        assert is_let_in(ours, "alice", "alice-secret")
        assert not is_let_in(ours, "alice", "alice-secret", "SCRAM-SHA-512")
        change(ours, kafka_admin.UserScramCredentialDeletion("alice", _KIND))
        assert not is_let_in(ours, "alice", "alice-secret")
