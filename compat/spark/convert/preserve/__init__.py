"""
``--preserve``: what lets a way back write the first store's files byte for byte.

On the way there everything that the other layout cannot say stands beside the target's data, as
Parquet files and one of JSON: how a file's bytes are put together, and those that nobody could
make again. On the way back a piece is taken from there only if its records are found to be what
they were; all else is converted as without the option. ``MAPPING.md`` describes the files.
"""

from __future__ import annotations
