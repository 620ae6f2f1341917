"""Checksums that both formats use: CRC-32C (Castagnoli) and CRC-32 (IEEE)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["crc32", "crc32c"]


def _load_crc32c() -> Callable[[Buffer, int], int]:
    """
    Return the library's function, past its package.

    The package's ``__init__`` reads its own metadata and brings a command line along, which costs
    more than everything else that a broker needs to start; the function is in an extension beside.
    """
    package = find_spec("crc32c")
    places = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec("_crc32c", list(places)) if places else None
    if spec is None or spec.loader is None:
        from crc32c import crc32c as slow_to_import

        return slow_to_import
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[Buffer, int], int] = module.crc32c
    return function


_crc32c = _load_crc32c()
if TYPE_CHECKING:

    def crc32c(data: Buffer, value: int = 0) -> int:
        """Return the CRC-32C of `data`, continued from `value`."""
        return _crc32c(data, value)
else:
    crc32c = _crc32c
