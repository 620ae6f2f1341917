"""Requests that are not served because of who asks (Java's two exceptions of authentication)."""

from __future__ import annotations

from logstore.errors import LogStoreError


class AccessError(LogStoreError):
    """It is not known who asks, or he may not have that; the text says so in Java's words."""
