"""
AlterUserScramCredentials (51): version 0. Gives users SCRAM credentials, and takes them away.

* the client salts the password; what is kept, in the metadata log, are the keys that follow
* a user may come once in a request: 92; a credential to be taken away that is not there: 91; an
  empty name, or fewer than 4096 or more than 16384 iterations: 93; an unknown mechanism: 33
* metadata of a release that had no SCRAM yet (before 3.5-IV2): 35
* the others of a request are served all the same; where the disk refuses that, none of them: 56

Source: ``ScramControlManager.alterCredentials``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.refused_request import RefusedRequestError, refusal_of
from logstore.compat.kafka.security.sasl.scram_mechanism import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramMechanism,
)
from logstore.errors import LogStoreError
from logstore.segments.kafka.cluster_metadata.records import RemoveUserScramCredentialRecord

if TYPE_CHECKING:
    from kafka.protocol.admin.users import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(
    broker: Broker, client: Client, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Change what can be changed, all of it at once."""
    from kafka.protocol.admin.users import AlterUserScramCredentialsResponse

    metadata = broker.store.metadata
    errors: dict[str, RefusedRequestError] = {}
    deletions = _sound(broker, request.deletions, errors, {}, _check_deletion)
    upsertions = _sound(broker, request.upsertions, errors, deletions, _check_upsertion)
    for name in [name for name, one in upsertions.items() if not one.salted_password]:
        del upsertions[name]  # Kafka stumbles over it: there is no key of nothing
        errors[name] = RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    deletions, upsertions, errors = map(_as_walked, (deletions, upsertions, errors))
    removed = [
        RemoveUserScramCredentialRecord(one.name, one.mechanism) for one in deletions.values()
    ]
    known = [
        ScramMechanism(one.mechanism).credential(
            one.name, bytes(one.salted_password), bytes(one.salt), one.iterations
        )
        for one in upsertions.values()
    ]
    if removed or known:
        try:
            metadata.change_users(removed, known)
        except (LogStoreError, OSError) as error:
            refusal = refusal_of(error, "SCRAM credentials")
            errors |= dict.fromkeys((*deletions, *upsertions), refusal)
            deletions, upsertions = {}, {}
    result_class = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    results = [
        result_class(user=name, error_code=ErrorCode.NONE, error_message=None)
        for name in (*deletions, *upsertions)
    ]
    results += [
        result_class(user=name, error_code=error.code, error_message=error.message)
        for name, error in errors.items()
    ]
    return AlterUserScramCredentialsResponse(version=request.API_VERSION, results=results)


def _as_walked(by_user: dict[str, Any]) -> dict[str, Any]:
    """Return the same in the order in which Kafka walks its table of users."""
    return {name: by_user[name] for name in members_in_order(by_user)}


def _sound(
    broker: Broker,
    wanted: list[Any],
    errors: dict[str, RefusedRequestError],
    before: dict[str, Any],
    check: Any,
) -> dict[str, Any]:
    """Return the changes that can be made, by user; why the others cannot goes to `errors`."""
    found: dict[str, Any] = {}
    for one in wanted:
        name = one.name
        if name in errors:
            continue
        try:
            if found.pop(name, None) is not None or before.pop(name, None) is not None:
                raise RefusedRequestError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            if not broker.store.metadata.image.metadata_version.has_scram:
                raise RefusedRequestError(
                    ErrorCode.UNSUPPORTED_VERSION,
                    "The current metadata.version does not support SCRAM",
                )
            _check_user(one)
            check(broker, one)
        except RefusedRequestError as error:
            errors[name] = error
        else:
            found[name] = one
    return found


def _check_user(one: Any) -> None:
    if not one.name:
        raise RefusedRequestError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if one.mechanism not in set(ScramMechanism):
        raise RefusedRequestError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def _check_deletion(broker: Broker, one: Any) -> None:
    if (one.mechanism, one.name) not in broker.store.metadata.image.scram:
        raise RefusedRequestError(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )


def _check_upsertion(broker: Broker, one: Any) -> None:
    if one.iterations < ITERATIONS_MIN:
        raise RefusedRequestError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if one.iterations > ITERATIONS_MAX:
        raise RefusedRequestError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
