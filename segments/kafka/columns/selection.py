"""Which records and columns are to be decoded."""

from __future__ import annotations

import attrs

_OFFSET_MIN, _OFFSET_MAX = -(2**63), 2**63 - 1


@attrs.frozen
class Selection:
    """
    What to decode: records with offsets in ``[start_offset, end_offset)``, and which columns.

    Batches wholly outside are passed over, neither checked nor decompressed; so are control
    batches without `has_control`. Without `is_checked` CRCs are not looked at.

    Without `has_value_data` the values' bounds and nulls are told, and their data is empty.

    With `is_run` the bytes are a run of one log that was cut out for these offsets: batches must
    come in order, and one outside of the span is damage. No CRC covers a batch's base offset.
    """

    start_offset: int | None = None
    end_offset: int | None = None
    has_keys: bool = True
    has_values: bool = True
    has_headers: bool = True
    has_control: bool = True
    is_checked: bool = True
    is_run: bool = False
    has_value_data: bool = True

    @property
    def span(self) -> tuple[int, int]:
        """First and last offset that are wanted."""
        first = _OFFSET_MIN if self.start_offset is None else self.start_offset
        last = _OFFSET_MAX if self.end_offset is None else self.end_offset - 1
        return first, last


EVERYTHING = Selection()
