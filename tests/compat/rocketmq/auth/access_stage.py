"""A broker with users on a simulated host, and clients that sign."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping

from logstore.compat.rocketmq.auth.settings import LOCAL_PROVIDERS
from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import Peer, a_broker
from tests.compat.rocketmq.frames import Answer

ROOT = ("root", "root-pw")
ALICE = ("alice", "alice-pw")
SETTINGS: Mapping[str, str] = {
    **LOCAL_PROVIDERS,
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"root","password":"root-pw"}',
}
User = tuple[str, str]


def signed(user: User, fields: Mapping[str, object], body: bytes = b"") -> dict[str, object]:
    """Return the fields as a client's hook sends them."""
    named = {name: str(value) for name, value in fields.items()} | {"AccessKey": user[0]}
    content = "".join(named[name] for name in sorted(named)).encode() + body
    digest = hmac.new(user[1].encode(), content, hashlib.sha1).digest()
    return {**named, "Signature": base64.b64encode(digest).decode()}


class Stage:
    """The broker, a connection to it, and what administrators do."""

    def __init__(self, host: SimulatedHost | None = None, **settings: str) -> None:
        self.broker: Broker = a_broker(host, {**SETTINGS, **settings})
        self.peer = Peer(self.broker)

    def ask(
        self,
        user: User | None,
        code: int,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Ask in the name of a user, or of nobody."""
        named = fields or {}
        return self.peer.ask(code, named if user is None else signed(user, named, body), body)

    def told(self, user: User | None, code: int, **fields: object) -> tuple[int, str | None]:
        """Return code and remark of an answer."""
        answer = self.ask(user, code, fields)
        return answer.code, answer.remark

    def administrate(
        self, code: RequestCode, content: object = None, by: User = ROOT, **fields: object
    ) -> Answer:
        """Ask for users or rules, or change them."""
        body = b"" if content is None else json.dumps(content).encode()
        return self.ask(by, code, fields, body)

    def make_user(self, user: User, **about: str) -> None:
        """Make a user."""
        content = {"password": user[1], **about}
        answer = self.administrate(RequestCode.AUTH_CREATE_USER, content, username=user[0])
        assert answer.code == 0, answer.remark

    def allow(self, user: User, *entries: dict[str, object], policy_type: str = "Custom") -> Answer:
        """Set rules of a user."""
        content = {"policies": [{"policyType": policy_type, "entries": list(entries)}]}
        subject = f"User:{user[0]}"
        return self.administrate(RequestCode.AUTH_CREATE_ACL, content, subject=subject)


def rule(
    resource: object, *actions: str, decision: str = "Allow", ips: object = None
) -> dict[str, object]:
    """Return an entry of a policy, as administrators send it."""
    return {
        "resource": resource, "actions": list(actions), "decision": decision, "sourceIps": ips,
    }  # fmt: skip
