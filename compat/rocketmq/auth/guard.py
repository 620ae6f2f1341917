"""
The guard before a broker's handlers: each request's signature and rights first, then its handler.

Only brokers with access control have one. What comes from within this process, the proxy's
requests, has been looked at there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.auth.access_error import AccessError
from logstore.compat.rocketmq.auth.asked import asked_by
from logstore.compat.rocketmq.auth.signatures import ACCESS_KEY, SIGNATURE, signed_content
from logstore.compat.rocketmq.registry import OTHERS, AnyHandler, Handler, Handlers
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.access import Access
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


class GuardedHandler(Handler):
    """A handler that is asked once a request has passed."""

    __slots__ = ("_access", "_inner")

    def __init__(self, access: Access, inner: Handler) -> None:
        super().__init__(inner.code, "")
        self._access = access
        self._inner = inner

    def load(self) -> None:
        """Load the handler behind this one."""
        inner = self._inner
        if inner.handle is None and inner.handle_raw is None:
            inner.load()
        if inner.handle_raw is not None:
            self.handle_raw = self._guarded(inner.handle_raw)
        elif inner.handle is not None:
            self.handle = self._guarded(inner.handle)

    def _guarded(self, handle: AnyHandler) -> Callable[[Any, Channel, Command], Any]:
        access = self._access

        def guarded(service: Any, channel: Channel, request: Command) -> Any:
            if not channel.is_trusted:
                check(access, channel, request)
            return handle(service, channel, request)

        return guarded


def guarded_handlers(access: Access, handlers: Handlers) -> Handlers:
    """Return `handlers` behind a guard; who is not known is not even told what is not served."""
    others = Handler(RequestCode.AUTH_GET_USER, "")
    others.handle = _not_supported
    table = {**handlers, OTHERS: others}
    return {code: GuardedHandler(access, inner) for code, inner in table.items()}


def check(access: Access, channel: Channel, request: Command) -> None:
    """
    See to it that a request comes from whom it says, and that he may have what it asks for.

    Raises:
        RefusedError: NO_PERMISSION.

    """
    fields = request.ext_fields
    code = str(request.code)
    username = fields.get(ACCESS_KEY)
    try:
        access.authenticate(
            code,
            channel.address,
            username or "",
            fields.get(SIGNATURE),
            lambda: signed_content(request),
        )
        if access.settings.authorizes:
            asked = asked_by(request, access.settings.cluster)
            access.authorize(code, channel.address, username, asked, source_of(channel.address))
    except AccessError as error:
        raise RefusedError(ResponseCode.NO_PERMISSION, str(error)) from error


def source_of(address: str) -> str:
    """Return the address of a peer without its port."""
    return address.rpartition(":")[0]


def _not_supported(service: Any, channel: Channel, request: Command) -> Any:
    del service, channel
    raise RefusedError(
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported"
    )
