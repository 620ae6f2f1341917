"""
The APIs as a broker with an authorizer has them: in front of each handler stands its guard.

A broker without one asks the registry, and nothing of this is imported. An API that has no guard
is not served: what nobody has thought about must not be open by oversight.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.kafka.message_handlers import (
    ask_handler,
    changed,
    read_message,
    write_answer,
)
from logstore.compat.kafka.registry import APIS, Api, FindApi, RawRequest
from logstore.compat.kafka.security.guarded_request import PASS, Guard, GuardedRequest
from logstore.compat.kafka.security.guards import GUARDS, OPEN, RAW_GUARDS

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.waiting import Later


class GuardedApis:
    """Entries of the registry, each behind its guard."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._guarded: dict[int, Api] = {}

    def finding(self, find_api: FindApi | None) -> FindApi:
        """Return who finds guarded entries; `find_api` finds the bare ones."""

        def find(key: int, version: int) -> Api | None:
            found = APIS.get(key) if find_api is None else find_api(key, version)
            # Emulated versions ask the handlers of today's, in front of which a guard stands.
            return self.guarded(found) if found is not None and found is APIS.get(key) else found

        return find

    def guarded(self, api: Api) -> Api:
        """
        Return an entry whose handler is its guard.

        Raises:
            LookupError: the API has no guard.

        """
        found = self._guarded.get(api.key)
        if found is None:
            found = self._guarded[api.key] = self._guard(api)
        return found

    def _guard(self, api: Api) -> Api:
        key = api.key
        if key in OPEN:
            return api
        if key in RAW_GUARDS:
            handle_raw = partial(RAW_GUARDS[key], self._authorizer, api)
            return attrs.evolve(api, handle=None, handle_raw=handle_raw)
        if key not in GUARDS:
            raise LookupError(f"{api.name} ({key}) has no guard")
        guard = GUARDS[key]
        if api.module:
            handle = partial(_guard_decoded, self._authorizer, api, guard)
            return attrs.evolve(api, handle=handle, handle_raw=None)
        handle_raw = partial(_guard_raw, self._authorizer, api, guard)
        return attrs.evolve(api, handle=None, handle_raw=handle_raw)


def _guard_decoded(
    authorizer: Authorizer, api: Api, guard: Guard, broker: Broker, client: Client, message: Any
) -> Any:
    """Stand in front of a handler of decoded messages."""
    assert api.handle is not None
    serve = partial(api.handle, broker, client)
    request = GuardedRequest(broker, client, authorizer, api, message.API_VERSION, message, serve)
    answer = guard(request)
    return serve(message) if answer is PASS else answer


def _guard_raw(
    authorizer: Authorizer, api: Api, guard: Guard, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Stand in front of a handler that reads by itself, for which the guard reads, too."""
    message = read_message(api, raw)
    serve = partial(ask_handler, api, broker, client, raw)
    request = GuardedRequest(broker, client, authorizer, api, raw.version, message, serve)
    answer = guard(request)
    if answer is PASS:
        assert api.handle_raw is not None
        return api.handle_raw(broker, client, raw)
    found: list[Chunk] | Later[list[Chunk]] = changed(answer, partial(write_answer, raw))
    return found
