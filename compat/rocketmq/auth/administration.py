"""What administrators are told of their changes of users and rules (``AdminBrokerProcessor``)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.auth.access_error import AccessError
from logstore.compat.rocketmq.auth.signatures import ACCESS_KEY
from logstore.compat.rocketmq.wire.bodies import json_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.tables.access import SUPER, User

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.access import Access
    from logstore.compat.rocketmq.wire.remoting import Command

#: Java forgets to take back what it says of an answer before it is one
_DONE = "not set any response code"
_BROKEN = "An system error occurred, please try again later."


def done(content: object = None) -> Response:
    """Return the answer to what was done; without a content it has no body."""
    body = b"" if content is None else json_body(content)
    return Response(ResponseCode.SUCCESS, _DONE, body=body)


@contextmanager
def refusing() -> Generator[None]:
    """Answer NO_PERMISSION to what raises AccessError."""
    try:
        yield
    except AccessError as error:
        raise RefusedError(ResponseCode.NO_PERMISSION, str(error)) from error


def broken() -> RefusedError:
    """Return the answer to what Java stumbles over."""
    return RefusedError(ResponseCode.SYSTEM_ERROR, _BROKEN)


def invalid(remark: str) -> RefusedError:
    """Return the answer to a request whose fields are wrong."""
    return RefusedError(ResponseCode.INVALID_PARAMETER, remark)


def require_users(access: Access) -> None:
    """Raise RefusedError where the settings name no place for users."""
    if not access.settings.has_users:
        raise broken()


def require_acls(access: Access) -> None:
    """Raise RefusedError where the settings name no place for rules."""
    if not access.settings.has_acls:
        raise broken()


def user_named(access: Access, username: str | None) -> User | None:
    """Return a user, None if there is none. Raises AccessError, RefusedError."""
    if is_blank(username):
        raise AccessError("username can not be blank")
    require_users(access)
    return access.table.users.get(username or "")


def is_by_normal_user(access: Access, request: Command) -> bool:
    """
    Tell whether somebody asks who may not do everything; where nobody signs, nobody does.

    Raises:
        AccessError: nobody is known by that name.

    """
    name = request.ext_fields.get(ACCESS_KEY)
    if not name:
        return False
    user = user_named(access, name)
    if user is None:
        raise AccessError(f"User:{name} is not found")
    return user.user_type != SUPER


def is_blank(text: str | None) -> bool:
    """Tell whether there is nothing to read."""
    return text is None or not text.strip()


def whole(text: str) -> str:
    """Return a name that can be written down: of half characters that is a question mark."""
    return text.encode("utf-8", "replace").decode()


def text_in(content: dict[str, Any], name: str) -> str | None:
    """Return a text in a body, None where there is none."""
    value = content.get(name)
    return None if value is None else str(value)


def known_name(text: str | None, names: tuple[str, ...]) -> str | None:
    """Return the one of Java's names that `text` is in any case; None for others."""
    lowered = (text or "").lower()
    return next((name for name in names if name.lower() == lowered), None)
