"""Who serves a broker's requests: by its role, and by what else has to be looked at first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.roles import handlers_of_role

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.registry import Handlers


def handlers_for(broker: Broker) -> Handlers:
    """Return who serves which code; what a broker does without costs it nothing."""
    handlers = handlers_of_role(broker.settings)
    if broker.static_topics.details:
        from logstore.compat.rocketmq.static_topics.mapped_handlers import mapped_handlers

        handlers = mapped_handlers(handlers)
    if broker.guarding is not None:
        from logstore.compat.rocketmq.auth.guard import guarded_handlers

        handlers = guarded_handlers(broker.guarding, handlers)
    return handlers
