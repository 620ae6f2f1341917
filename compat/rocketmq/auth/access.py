"""
Access control of one broker: who signs, and may he have that? Users and rules stand in a table.

Made where the settings want it, or when somebody asks for users or rules.
Source: ``DefaultAuthenticationHandler``, ``UserAuthorizationHandler``, ``AclAuthorizationHandler``.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.auth.access_error import AccessError
from logstore.compat.rocketmq.auth.matching import deciding
from logstore.compat.rocketmq.auth.signatures import is_same, signature_of
from logstore.compat.rocketmq.auth.strategies import Strategy
from logstore.segments.rocketmq.tables.access import (
    DENY,
    DISABLED,
    SUPER,
    AccessTable,
    Acl,
    User,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from logstore.compat.rocketmq.auth.asked import Asked
    from logstore.compat.rocketmq.auth.settings import AccessSettings, Credentials
    from logstore.host import Host

_log = logging.getLogger(__name__)
_UNKNOWN = "Authorization failed. Please verify your access rights and try again."
USERS_MISSING = "The authenticationMetadataProvider is not configured"
ACLS_MISSING = "The authorizationMetadataProvider is not configured"
#: what a real broker keeps in the same directory
_REAL_USERS = "users"


class Access:
    """
    Judges requests by `settings`, with what stands in the table in `directory`.

    Raises, on construction:
        CorruptFileError: the table cannot be read.
        OSError: the first user cannot be written down.

    """

    def __init__(self, host: Host, directory: str, settings: AccessSettings) -> None:
        self.settings = settings
        self.table = AccessTable(host, directory)
        if not self.table.load() and host.fs.exists(f"{directory}/{_REAL_USERS}"):
            _log.warning(
                "%s/%s: users of a real broker, in RocksDB, are not read", directory, _REAL_USERS
            )
        self._authentications = Strategy(settings.authentication_memory, host.clock)
        self._authorizations = Strategy(settings.authorization_memory, host.clock)
        for first in (settings.first_user, settings.inner_client):
            if first is not None:
                self._enter(first)

    def _enter(self, first: Credentials) -> None:
        if first.access_key not in self.table.users:
            self.put_user(User(first.access_key, first.secret_key, SUPER))

    # changes, durable on return; where one raises OSError, nothing has changed

    def put_user(self, user: User) -> None:
        """Set a user."""
        self._replace(users={**self.table.users, user.username: user})

    def put_acl(self, acl: Acl) -> None:
        """Set the rules of a subject."""
        self._replace(acls={**self.table.acls, acl.subject: acl})

    def remove_user(self, username: str) -> None:
        """Remove a user, if there is one of that name."""
        kept = {name: user for name, user in self.table.users.items() if name != username}
        self._replace(users=kept)

    def remove_acl(self, subject: str) -> None:
        """Remove the rules of a subject, if there are any."""
        kept = {key: acl for key, acl in self.table.acls.items() if key != subject}
        self._replace(acls=kept)

    def _replace(
        self, users: dict[str, User] | None = None, acls: dict[str, Acl] | None = None
    ) -> None:
        table = self.table
        before = table.users, table.acls
        table.users = table.users if users is None else users
        table.acls = table.acls if acls is None else acls
        try:
            table.persist()
        except OSError:
            table.users, table.acls = before
            raise

    # who asks

    def authenticate(
        self,
        code: str,
        connection: Hashable,
        username: str,
        signature: str | None,
        content: Callable[[], bytes],
    ) -> None:
        """
        See to it that a request comes from whom it says; `code` is what white lists call it.

        Raises:
            AccessError: it does not.

        """
        if not self.settings.authenticates:
            return
        key = connection, username if username.strip() else ""
        judge = partial(self._authenticate, code, username, signature, content)
        self._authentications.evaluate(key, judge)

    def _authenticate(
        self, code: str, username: str, signature: str | None, content: Callable[[], bytes]
    ) -> None:
        if code in self.settings.unauthenticated_codes:
            return
        if not self.settings.has_users:
            raise AccessError(USERS_MISSING)
        if not username:
            raise AccessError("username cannot be null.")
        user = self.table.users.get(username)
        if user is None:
            raise AccessError(f"User:{username} is not found.")
        if user.user_status == DISABLED:
            raise AccessError(f"User:{username} is disabled.")
        if signature is None or not is_same(signature_of(content(), user.password), signature):
            _log.info("%s did not sign request %s with his password", username, code)
            raise AccessError("check signature failed.")

    # what he may do

    def authorize(
        self,
        code: str,
        connection: Hashable,
        username: str | None,
        asked: Iterable[Asked],
        source_ip: str,
    ) -> None:
        """
        See to it that a user, None where nobody is named, may have all of what he asks for.

        Raises:
            AccessError: he may not have something.

        """
        for one in asked:
            judge = partial(self._authorize, code, username, one, source_ip)
            self._authorizations.evaluate((connection, username, one, source_ip), judge)

    def _authorize(self, code: str, username: str | None, asked: Asked, source_ip: str) -> None:
        if code in self.settings.unauthorized_codes:
            return
        if username is None:
            raise AccessError(_UNKNOWN)
        if not self.settings.has_users:
            raise AccessError(USERS_MISSING)
        user = self.table.users.get(username)
        if user is None:
            raise AccessError(f"User:{username} not found.")
        if user.user_status == DISABLED:
            raise AccessError(f"User:{username} is disabled.")
        if user.user_type == SUPER:
            return
        if not self.settings.has_acls:
            raise AccessError(ACLS_MISSING)
        flaw = self._flaw(username, asked, source_ip)
        if flaw is not None:
            told = f"User:{username} has no permission to access {asked.resource.key}"
            raise AccessError(f"{told} from {source_ip}, {flaw}")

    def _flaw(self, username: str, asked: Asked, source_ip: str) -> str | None:
        """Return what is to be said of rules that do not allow it."""
        acl = self.table.acls.get(f"User:{username}")
        entry = None if acl is None else deciding(acl, asked, source_ip)
        if entry is None:
            return "no matched policies."
        return "the decision is deny." if entry.decision == DENY else None
