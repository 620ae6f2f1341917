"""Damaged, cut and shuffled frames at the gate, and damaged ciphertext: nobody comes in by them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from logstore.compat.tls import TlsServer
from tests.compat.kafka.conversation import joined
from tests.compat.kafka.security.secured import SaslPeer, Secured
from tests.compat.scripted_service import ScriptedConnection, ScriptedService, echo
from tests.compat.tls_peers import TlsClient, client_context, server_context
from tests.damage import damaged
from tests.fuzzing import rounds

_PARTS = 2
#: so far from what is right that no damage leads there
WRONG = b"\0alice\0guessed"


def honest_frames(peer: SaslPeer) -> list[bytes]:
    """Return what a client without the right password may send."""
    software = {"client_software_name": "a", "client_software_version": "1"}
    return [
        peer.encoded("ApiVersions", 3, software),
        peer.encoded("Metadata", 1, {"topics": []}),
        *(
            peer.encoded("SaslHandshake", version, {"mechanism": mechanism})
            for version in (0, 1)
            for mechanism in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI")
        ),
        *(
            peer.encoded("SaslAuthenticate", version, {"auth_bytes": token})
            for version in (0, 2)
            for token in (WRONG, b"n,,n=alice,r=x", b"c=biws,r=x,p=AAAA", b"n,,\1auth=Bearer x\1\1")
        ),
        len(WRONG).to_bytes(4, "big") + WRONG,
    ]


def test_nobody_gets_past_the_gate(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever comes, there are whole answers or an end, and no request is served."""
    caplog.set_level(logging.ERROR)
    secured = Secured({"connection.failed.authentication.delay.ms": "0"})
    frames = honest_frames(secured.peer())
    for seed, chance in rounds(_PARTS):
        peer = secured.peer()
        for _ in range(chance.randrange(1, 8)):
            frame = chance.choice(frames)
            if chance.random() < 0.5:
                body = damaged(frame[4:], chance)
                frame = len(body).to_bytes(4, "big") + body
            answer = joined(peer.connection.feed(frame))
            assert peer.name == "User:ANONYMOUS", f"seed {seed}"
            while answer:
                size_bytes = int.from_bytes(answer[:4], "big")
                assert size_bytes <= len(answer) - 4, f"seed {seed}"
                answer = answer[4 + size_bytes :]
            if peer.is_hung_up_on:
                break
        secured.pass_time(100)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_damaged_ciphertext(tmp_path: Path) -> None:
    """The connection within never sees a byte that its peer has not sent."""
    context, client_side = server_context(tmp_path), client_context(tmp_path)
    for seed, chance in rounds(_PARTS):
        inner = ScriptedConnection(ScriptedService(echo))
        connection = TlsServer(context).wrap(inner)
        if chance.random() < 0.7:
            client = TlsClient(connection, client_side)
            client.shake_hands()
            client.tls.write(b"\0\0\0\5hello")
            data = bytearray(client.outgoing.read())
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            data = bytearray(chance.randbytes(chance.randrange(1, 600)))
            data[:3] = chance.choice((b"\x16\3\1", b"\x17\3\3", data[:3]))
        connection.writable()[: len(data)] = data
        connection.received(len(data))
        connection.output.clear()
        assert inner.service.handled == 0, f"seed {seed}"
        assert not inner.frames.pending(), f"seed {seed}"
