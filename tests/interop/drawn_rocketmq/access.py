"""Users and their rights: made, changed, told of, deleted. Nobody has to sign."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq.world import World


def user_name(world: World) -> str | None:
    """Draw a user's name, most often one that is there."""
    if world.likely(0.9):
        return f"{world.prefix}-u{world.chance.randrange(3)}"
    return str(world.pick("", " ", "nobody", "ü", f"User:{world.prefix}-u0")) or None


def user(world: World) -> Any:
    """Draw what is said of a user."""
    found: dict[str, Any] = {"password": world.pick("pw", "pw", "pw", "", " ", "ü", None)}
    if world.likely(0.4):
        found["userType"] = world.pick("Super", "Normal", "normal", "SUPER", "strange", "", None)
    if world.likely(0.4):
        found["userStatus"] = world.pick("enable", "disable", "ENABLE", "odd", "", None)
    if world.likely(0.1):
        found["username"] = user_name(world)
    if world.likely(0.05):
        del found["password"]
    return found


def signed_by(world: World) -> dict[str, Any]:
    """Draw who says to ask; where nothing is to be signed it is believed."""
    return {"AccessKey": user_name(world)} if world.likely(0.1) else {}


def change_user(world: World) -> None:
    """Make, change or delete a user."""
    code = world.pick(Code.AUTH_CREATE_USER, Code.AUTH_CREATE_USER, Code.AUTH_UPDATE_USER,
                      Code.AUTH_DELETE_USER)  # fmt: skip
    fields = {"username": user_name(world)} | signed_by(world)
    body = b"" if code == Code.AUTH_DELETE_USER else user(world)
    world.ask(code, fields, body, is_plain=True)


def ask_for_users(world: World) -> None:
    """Ask for one user, or for those whose names hold a text."""
    if world.likely(0.5):
        world.ask(Code.AUTH_GET_USER, {"username": user_name(world)})
        return
    wanted = world.pick(None, "", f"{world.prefix}-u", "u1", "nobody", " ")
    world.ask(Code.AUTH_LIST_USER, {"filter": wanted})


def subject(world: World) -> str | None:
    """Draw whose rights it is about."""
    name = user_name(world)
    known = *[f"User:{name}"] * 8, f"user:{name}", f"Role:{name}", str(name), "User:", ""
    return str(world.pick(*known)) or None


def resource(world: World) -> Any:
    """Draw what rights are for."""
    kind = world.pick("Topic", "Topic", "Group", "topic", "Cluster", "Strange", "")
    name = world.pick("a", "b", "*", "pre*", "", "a b", "%RETRY%g")
    return world.pick(*[f"{kind}:{name}"] * 8, "*", name, None)


def entry(world: World) -> Any:
    """Draw one rule."""
    return {
        "resource": resource(world),
        "actions": world.pick(
            ["Pub"], ["Sub", "Get"], ["All"], ["pub"], ["Create", "List"], [], None, ["Any"],
            ["strange"], ["Pub", "Pub"], ["All", "Pub"],
        ),
        "decision": world.pick("Allow", "Allow", "Deny", "deny", "perhaps", "", None),
        "sourceIps": world.pick(
            None, None, None, ["127.0.0.1"], ["10.0.0.0/8", "192.168.1.0/24"], [], [""], ["x"],
            ["300.1.1.1"], ["10.0.0.0/40"], ["::1"],
        ),
    }  # fmt: skip


def policies(world: World) -> Any:
    """Draw the body of a request that sets rules."""
    found: dict[str, Any] = {
        "policies": [
            {
                "policyType": world.pick("Custom", "Custom", "Default", "custom", None, "", "odd"),
                "entries": [entry(world) for _ in range(world.pick(1, 1, 1, 2, 3, 0))],
            }
            for _ in range(world.pick(1, 1, 1, 2, 0))
        ]
    }
    if world.likely(0.05):
        found["subject"] = subject(world)
    return found


def change_rights(world: World) -> None:
    """Give rights, change or take them."""
    code = world.pick(Code.AUTH_CREATE_ACL, Code.AUTH_CREATE_ACL, Code.AUTH_UPDATE_ACL,
                      Code.AUTH_DELETE_ACL)  # fmt: skip
    fields: dict[str, Any] = {"subject": subject(world)} | signed_by(world)
    body: Any = b""
    if code == Code.AUTH_DELETE_ACL:
        fields |= {"resource": world.pick(None, resource(world), ""),
                   "policyType": world.pick(None, "Custom", "Default", "", "odd")}  # fmt: skip
    else:
        body = policies(world)
    world.ask(code, fields, body, is_plain=True)


def ask_for_rights(world: World) -> None:
    """Ask for the rights of one, or for those of which a text is part."""
    if world.likely(0.6):
        world.ask(Code.AUTH_GET_ACL, {"subject": subject(world)})
        return
    fields = {
        "subjectFilter": world.pick(None, "", f"{world.prefix}-u", "u1", "nobody"),
        "resourceFilter": world.pick(None, "", "Topic", "Group:", "pre", "nothing"),
    }
    world.ask(Code.AUTH_LIST_ACL, fields)
