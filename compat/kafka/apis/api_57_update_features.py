"""
UpdateFeatures (57): versions 0-2. A level holds at once, and is kept in the metadata log.

* to leave a level as it is: fine; the message is the text ``NONE``, as from Kafka
* unknown feature, level out of its range, type of change unknown or not the one that it takes: 95
* ``metadata.version`` goes down only as far as what is written stays the same: 95
* a level that needs a higher ``metadata.version`` than there is or comes with it: 95
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
from logstore.compat.kafka.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    Feature,
    features_of,
)
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from kafka.protocol.admin.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_RESULTS_UNTIL = 1
#: the levels of metadata.version that write something else than the one before them
_METADATA_CHANGED_AT = (8, 11, 13, 14, 15, 17, 23, 30)
#: the level of metadata.version that a level of another feature needs
_METADATA_VERSION_FOR = {(ELIGIBLE_LEADER_REPLICAS_VERSION, 1): 23}
#: the level that every other feature needs, and its name
_LOWEST_METADATA_LEVEL, _LOWEST_METADATA_NAME = 7, "3.3-IV3"


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
    # Of a feature that is named twice the last is meant; what is wrong first in Kafka's table of
    # them is told.
    by_name = {wanted.feature: wanted for wanted in request.feature_updates}
    updates = [by_name[name] for name in members_in_order(by_name)]
    levels = {wanted.feature: wanted.max_version_level for wanted in updates}
    metadata_level = levels.get(METADATA_VERSION, served[METADATA_VERSION].level)
    try:
        for wanted in updates:
            feature = served.get(wanted.feature, Feature(wanted.feature, 0, 0, 0))
            change, level = _type_of_change(version, wanted), wanted.max_version_level
            _check(feature, level, change, f"Local controller {broker.node_id}")
            _check_by_itself(feature, level, change, metadata_level)
    except RefusedRequestError as error:
        return UpdateFeaturesResponse(
            version=version, error_code=error.code, error_message=str(error), results=[]
        )
    if version == 0 or not request.validate_only:
        broker.change_features(levels)
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


def _check(feature: Feature, level: int, change: int, whose: str) -> None:
    """Refuse a level that there is not, and a change in the other direction than was meant."""
    if change not in set(_Change):
        raise _invalid(feature, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(feature, level, "A feature version cannot be less than 0.")
    if not feature.level_min <= level <= feature.level_max:
        reason = f"only supports versions {feature.level_min}-{feature.level_max}"
        if feature.level_max == 0:
            reason = "does not support this feature."
        raise _invalid(feature, level, f"{whose} {reason}")
    if level < feature.level and change == _Change.UPGRADE:
        reason = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
        raise _invalid(feature, level, reason)
    if level > feature.level and change != _Change.UPGRADE:
        raise _invalid(feature, level, "Can't downgrade to a newer version.")


def _check_by_itself(feature: Feature, level: int, change: int, metadata_level: int) -> None:
    """Refuse what this one feature does not take."""
    if feature.name == METADATA_VERSION:
        if any(level < changed <= feature.level for changed in _METADATA_CHANGED_AT):
            reason = (
                "Unsafe metadata downgrade is not supported in this version."
                if change == _Change.UNSAFE_DOWNGRADE
                else "Refusing to perform the requested downgrade because it might delete metadata "
                "information."
            )
            move = f"from {feature.level} to {level}"
            raise _refused(f"Unsupported {feature.name} downgrade {move}. {reason}")
    elif feature.name == KRAFT_VERSION and level != feature.level:
        raise _invalid(feature, level, "The quorum is this one node, and stays so.")
    elif feature.level_max == 0:
        raise _invalid(feature, level, f"Feature {feature.name} not found.")
    elif feature.name != KRAFT_VERSION and level and metadata_level < _LOWEST_METADATA_LEVEL:
        needs = f"{METADATA_VERSION}={_LOWEST_METADATA_LEVEL} ({_LOWEST_METADATA_NAME})"
        reason = f"{feature.name} could not be set to {level} because it depends on {needs}"
        raise _invalid(feature, level, reason)
    needed = _METADATA_VERSION_FOR.get((feature.name, level), 0)
    if metadata_level < needed:
        reason = f"it depends on {METADATA_VERSION} level {needed}"
        reason = f"{feature.name} could not be set to {level} because {reason}"
        raise _invalid(feature, level, reason)


def _invalid(feature: Feature, level: int, reason: str) -> RefusedRequestError:
    return _refused(f"Invalid update version {level} for feature {feature.name}. {reason}")


def _refused(reason: str) -> RefusedRequestError:
    failed = "The update failed for all features since the following feature had an error"
    return RefusedRequestError(ErrorCode.INVALID_UPDATE_VERSION, f"{failed}: {reason}")
