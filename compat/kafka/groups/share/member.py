"""One member of a share group: what it wants, and what it may read together with others."""

from __future__ import annotations

import uuid

import attrs

from logstore.compat.kafka.groups.modern.group import Target
from logstore.compat.kafka.groups.modern.member import ModernMember


@attrs.frozen
class ShareMember(ModernMember):
    """
    A member of a share group; nothing that it has is its own.

    Source: ``ShareGroupMember``.
    """

    assigned: Target = attrs.field(factory=dict[uuid.UUID, frozenset[int]])
