"""Asks a control port."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any

import click

_SECONDS_MAX = 30


class ControlClient:
    """Speaks to the control port at ``[HOST:]PORT``, or at its address as a URL."""

    def __init__(self, address: str) -> None:
        plain = address.removeprefix("http://").rstrip("/")
        self._url = f"http://{plain if ':' in plain else f'127.0.0.1:{plain}'}"

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """
        Return what is answered.

        Raises:
            click.ClickException: nobody answers, or what is asked for makes no sense.

        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method)  # noqa: S310 - http
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS_MAX) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise click.ClickException(_reason(error)) from None
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise click.ClickException(
                f"no control port answers at {self._url} ({reason}); start one with "
                "`logstore serve --control-port PORT`"
            ) from None


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        told: Any = json.load(error)
        return str(told["error"])
    except (ValueError, KeyError, TypeError):
        return str(error)
