"""One file per API key; each registers its versions and its handler."""

from __future__ import annotations

import importlib
import pkgutil


def load_all() -> None:
    """Import every ``api_NN_name`` file of this folder, so that the registry is complete."""
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("api_"):
            importlib.import_module(f"{__name__}.{module.name}")
