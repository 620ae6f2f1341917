"""
UpdateFeatures (57): versions 0-2. A level holds at once, and is kept in the metadata log.

* to leave a level as it is: fine; the message is the text ``NONE``, as from Kafka
* unknown feature, level out of its range, type of change unknown or not the one that it takes: 95
* ``metadata.version`` goes up only: a lower one has no place for some of what is written: 95
* ``kraft.version`` stays: 95
* one update that cannot be done lets all of them fail: the error is the answer's own
* v1: upgrade (1), safe (2) or unsafe downgrade (3) in place of "may downgrade"; rehearsal
* v2: no results, only the one error

Source: ``FeatureControlManager.updateFeature``, ``QuorumController.updateFeatures``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.features import KRAFT_VERSION, METADATA_VERSION, Feature, features_of
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from kafka.protocol.admin.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_RESULTS_UNTIL = 1


class _Change(IntEnum):
    """What may be done to a level."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def handle(
    broker: Broker, client: Client, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    """Give features the levels that are wanted, all of them or none."""
    from kafka.protocol.admin.cluster import UpdateFeaturesResponse

    del client
    version = request.API_VERSION
    served = {one.name: one for one in features_of(broker.store.metadata.image.features)}
    try:
        for wanted in request.feature_updates:
            _check(served.get(wanted.feature), wanted, _type_of_change(version, wanted))
    except RefusedRequestError as error:
        return UpdateFeaturesResponse(
            version=version, error_code=error.code, error_message=str(error), results=[]
        )
    if version == 0 or not request.validate_only:
        broker.change_features(
            {wanted.feature: wanted.max_version_level for wanted in request.feature_updates}
        )
    result_class = UpdateFeaturesResponse.UpdatableFeatureResult
    results = [
        result_class(feature=wanted.feature, error_code=ErrorCode.NONE, error_message="NONE")
        for wanted in request.feature_updates
    ]
    return UpdateFeaturesResponse(
        version=version,
        error_code=ErrorCode.NONE,
        error_message=None,
        results=results if version <= _RESULTS_UNTIL else [],
    )


def _type_of_change(version: int, wanted: Any) -> int:
    if version == 0:
        return _Change.SAFE_DOWNGRADE if wanted.allow_downgrade else _Change.UPGRADE
    return int(wanted.upgrade_type)


def _check(feature: Feature | None, wanted: Any, change: int) -> None:
    """Refuse an update that Kafka would refuse."""
    name, level = wanted.feature, wanted.max_version_level
    if change not in set(_Change):
        raise _invalid(f"{name}: there is no type of change {change}")
    if feature is None:
        raise _invalid(f"there is no feature {name}")
    if not max(feature.level_min, 0) <= level <= feature.level_max:
        raise _invalid(f"{name} has levels {feature.level_min} to {feature.level_max}, not {level}")
    if level < feature.level and change == _Change.UPGRADE:
        raise _invalid(f"{name} is at level {feature.level}; {level} would be a downgrade")
    if level > feature.level and change != _Change.UPGRADE:
        raise _invalid(f"{name} is at level {feature.level}; {level} would be an upgrade")
    if level != feature.level and name == KRAFT_VERSION:
        raise _invalid(f"{name} stays at level {feature.level}: the quorum is this one node")
    if level < feature.level and name == METADATA_VERSION:
        raise _invalid(
            f"{name} stays at level {feature.level}: {level} may have no place for what is written"
        )


def _invalid(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_UPDATE_VERSION, message)
