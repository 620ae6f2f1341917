"""
The tokens that a broker knows: made, renewed, ended, and looked up by who logs in with one.

They stand in the metadata log. A token's secret is the HMAC-SHA-512 of its id under
``delegation.token.secret.key``; without that setting there are no tokens.

Source: ``DelegationTokenControlManager``, ``DelegationTokenManager``, ``DelegationTokenCache``.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.security.principal import USER, Principal
from logstore.segments.kafka.cluster_metadata.token_records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from logstore.segments.kafka.kafka_uuid import random_uuid, uuid_to_text

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.security.sasl.scram_mechanism import ScramMechanism
    from logstore.segments.kafka.cluster_metadata.records import UserScramCredentialRecord

_TIME_MAX = (1 << 63) - 1


class TokenLogin(NamedTuple):
    """What SCRAM has to know of a token: its secret as a password's keys, and whose it is."""

    credential: UserScramCredentialRecord
    owner: Principal
    expiry_ms: int


class DelegationTokens:
    """The tokens of one broker; times are milliseconds of the wall clock."""

    def __init__(self, broker: Broker) -> None:
        self._host = broker.host
        self._metadata = broker.store.metadata
        config = broker.config.given
        self._key = str(config["delegation.token.secret.key"] or "").encode()
        self._lifetime_ms_max = config.integer("delegation.token.max.lifetime.ms")
        self._renewal_ms_max = config.integer("delegation.token.expiry.time.ms")
        self._logins: dict[tuple[ScramMechanism, str], UserScramCredentialRecord] = {}

    @property
    def is_enabled(self) -> bool:
        """Tell whether there are tokens at all."""
        return bool(self._key)

    @property
    def known(self) -> dict[str, DelegationTokenRecord]:
        """Every token by its id."""
        return self._metadata.image.delegation_tokens

    def secret_of(self, token_id: str) -> bytes:
        """Return what a token's holder has to know."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Sequence[Principal],
        lifetime_ms: int,
    ) -> DelegationTokenRecord:
        """
        Return a new token; it lasts as long as the settings say unless `lifetime_ms` is less.

        Raises:
            RefusedRequestError: there are no tokens, or a renewer is no user.
            OSError: the disk refuses it.

        """
        self._insist_on_tokens()
        if any(one.kind != USER for one in renewers):
            raise RefusedRequestError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        now_ms = self._host.clock.wall_ms()
        max_ms = _later(now_ms, _shorter(self._lifetime_ms_max, lifetime_ms))
        token = DelegationTokenRecord(
            str(owner), str(requester), tuple(map(str, renewers)), now_ms, max_ms,
            min(max_ms, _later(now_ms, self._renewal_ms_max)),
            uuid_to_text(random_uuid(self._host.rng)),
        )  # fmt: skip
        self._metadata.change_tokens([token])
        return token

    def renew(self, secret: bytes, who: Principal, period_ms: int) -> int:
        """
        Let a token last for `period_ms` from now on, or as long as the settings say; return until.

        Raises:
            RefusedRequestError: there is no such token, it has ended, or somebody else's.
            OSError: the disk refuses it.

        """
        token = self._found(secret)
        self._insist_on_living(token)
        _insist_on_owner(token, who)
        return self._end_at(token, _shorter(self._renewal_ms_max, period_ms))

    def expire(self, secret: bytes, who: Principal, period_ms: int) -> int:
        """
        Let a token end `period_ms` from now on, or at once if that is negative; return when.

        Raises:
            RefusedRequestError: there is no such token, it has ended, or somebody else's.
            OSError: the disk refuses it.

        """
        token = self._found(secret)
        _insist_on_owner(token, who)
        if period_ms < 0:
            self._metadata.change_tokens([RemoveDelegationTokenRecord(token.token_id)])
            return self._host.clock.wall_ms()
        self._insist_on_living(token)
        return self._end_at(token, period_ms)

    def sweep(self) -> None:
        """Remove the tokens that have ended."""
        ended = [one for one in self.known.values() if self._has_ended(one)]
        if ended:
            self._metadata.change_tokens(
                [RemoveDelegationTokenRecord(one.token_id) for one in ended]
            )
        for key in [key for key in self._logins if key[1] not in self.known]:
            del self._logins[key]

    def login(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        """Return what is to be known of who logs in by a token; None if there is no such one."""
        token = self.known.get(token_id)
        if token is None or not self.is_enabled:
            return None
        credential = self._logins.get((mechanism, token_id))
        if credential is None:
            password = base64.b64encode(self.secret_of(token_id)).decode()
            credential = mechanism.credential_of(token_id, password, self._host.rng)
            self._logins[mechanism, token_id] = credential
        return TokenLogin(credential, Principal.parse(token.owner), token.expiration_timestamp)

    def _insist_on_tokens(self) -> None:
        if not self.is_enabled:
            raise RefusedRequestError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        if not self._metadata.image.metadata_version.has_delegation_tokens:
            raise RefusedRequestError(ErrorCode.UNSUPPORTED_VERSION)

    def _found(self, secret: bytes) -> DelegationTokenRecord:
        self._insist_on_tokens()
        for token_id, token in self.known.items():
            if hmac.compare_digest(self.secret_of(token_id), secret):
                return token
        raise RefusedRequestError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)

    def _insist_on_living(self, token: DelegationTokenRecord) -> None:
        if self._has_ended(token):
            raise RefusedRequestError(ErrorCode.DELEGATION_TOKEN_EXPIRED)

    def _has_ended(self, token: DelegationTokenRecord) -> bool:
        return min(token.max_timestamp, token.expiration_timestamp) < self._host.clock.wall_ms()

    def _end_at(self, token: DelegationTokenRecord, period_ms: int) -> int:
        ends_ms = min(token.max_timestamp, _later(self._host.clock.wall_ms(), period_ms))
        self._metadata.change_tokens([attrs.evolve(token, expiration_timestamp=ends_ms)])
        return ends_ms


def _insist_on_owner(token: DelegationTokenRecord, who: Principal) -> None:
    if str(who) not in (token.owner, *token.renewers):
        raise RefusedRequestError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _shorter(most_ms: int, wanted_ms: int) -> int:
    """Return what is wanted, if anything is, but no more than there may be."""
    return min(most_ms, wanted_ms) if wanted_ms > 0 else most_ms


def _later(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, _TIME_MAX)
