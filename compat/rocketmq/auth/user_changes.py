"""Users as administrators make, change, remove and list them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.auth.access_error import AccessError
from logstore.compat.rocketmq.auth.administration import (
    done,
    invalid,
    is_blank,
    is_by_normal_user,
    known_name,
    refusing,
    require_acls,
    require_users,
    text_in,
    user_named,
    whole,
)
from logstore.compat.rocketmq.wire.bodies import read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.tables.access import DISABLED, ENABLED, NORMAL, SUPER, User

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.access import Access
    from logstore.compat.rocketmq.wire.remoting import Command, Response

_FOR_SUPER_USERS = "The super user can only be {} by super user"


class _Described:
    """A user as a request describes him: what it does not say is None."""

    def __init__(self, access: Access, request: Command, verb: str) -> None:
        username = request.ext_fields.get("username")
        if not username:
            raise invalid("The username is blank")
        content = read_object(request.body)
        self.username = whole(username)
        self.password = text_in(content, "password")
        self.type = known_name(text_in(content, "userType"), (SUPER, NORMAL))
        self.status = known_name(text_in(content, "userStatus"), (ENABLED, DISABLED))
        if self.type == SUPER and _is_by_normal_user(access, request):
            raise RefusedError(ResponseCode.SYSTEM_ERROR, _FOR_SUPER_USERS.format(verb))


def _is_by_normal_user(access: Access, request: Command) -> bool:
    try:
        return is_by_normal_user(access, request)
    except AccessError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from error


def create_user(access: Access, request: Command) -> Response:
    """Make a user of the name in the header."""
    described = _Described(access, request, "create")
    with refusing():
        if is_blank(described.username):
            raise AccessError("username can not be blank")
        if described.password is None or is_blank(described.password):
            raise AccessError("password can not be blank")
        if user_named(access, described.username) is not None:
            raise AccessError("The user is existed")
        user = User(
            described.username,
            described.password,
            described.type or NORMAL,
            described.status or ENABLED,
        )
        access.put_user(user)
    return done()


def update_user(access: Access, request: Command) -> Response:
    """Change what the body says of a user."""
    described = _Described(access, request, "update")
    with refusing():
        before = user_named(access, described.username)
        if before is None:
            raise AccessError("The user is not exist")
        if before.user_type == SUPER and is_by_normal_user(access, request):
            raise AccessError(_FOR_SUPER_USERS.format("update"))
        password = before.password if is_blank(described.password) else described.password
        assert password is not None, "a user has a password"
        user = attrs.evolve(
            before,
            password=password,
            user_type=described.type or before.user_type,
            user_status=described.status or before.user_status,
        )
        access.put_user(user)
    return done()


def delete_user(access: Access, request: Command) -> Response:
    """Remove a user and his rules; one who is not there is no error."""
    with refusing():
        user = user_named(access, request.ext_fields.get("username"))
        if user is None:
            return done()
        if user.user_type == SUPER and is_by_normal_user(access, request):
            raise AccessError(_FOR_SUPER_USERS.format("update"))
        access.remove_user(user.username)
        require_acls(access)
        access.remove_acl(f"User:{user.username}")
    return done()


def get_user(access: Access, request: Command) -> Response:
    """Tell of one user, if he is there."""
    username = request.ext_fields.get("username")
    if is_blank(username):
        raise invalid("The username is blank")
    with refusing():
        user = user_named(access, username)
    return done(None if user is None else user.to_json())


def list_users(access: Access, request: Command) -> Response:
    """Tell of all users whose name has a text in it."""
    require_users(access)
    wanted = request.ext_fields.get("filter") or ""
    wanted = "" if is_blank(wanted) else wanted
    found = [user.to_json() for user in access.table.sorted_users() if wanted in user.username]
    return done(found or None)
