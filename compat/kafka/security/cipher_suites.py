"""``ssl.cipher.suites``: which suites a listener offers."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from logstore.compat.cipher_suites import offer_suites

if TYPE_CHECKING:
    from logstore.compat.kafka.security.listener_settings import ListenerSettings

_KEY = "ssl.cipher.suites"


def restrict_ciphers(context: ssl.SSLContext, settings: ListenerSettings) -> None:
    """
    Let a context offer the suites of the listener only; all that are safe where it names none.

    Raises:
        ConfigError: none of them is known here.

    """
    try:
        offer_suites(context, settings.names(_KEY))
    except ssl.SSLError:
        raise settings.refusal(_KEY, "must name suites that OpenSSL knows") from None
