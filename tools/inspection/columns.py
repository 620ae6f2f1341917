"""Tables of text for people, aligned by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: what is longer stands out of its column: one long name must not make every line as long
_WIDTH_MAX = 48


def aligned(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table; a column of numbers (with commas, or missing) stands right."""
    cells = [[str(value) for value in row] for row in rows]
    columns = list(zip(header, *cells, strict=True))
    widths = [_width(column) for column in columns]
    is_right = [bool(cells) and all(map(_is_number, column[1:])) for column in columns]
    return [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_right, strict=True)
        ).rstrip()
        for line in (list(header), *cells)
    ]


def _width(column: Sequence[str]) -> int:
    head, *cells = map(len, column)
    return max([head, *(length for length in cells if length <= _WIDTH_MAX)])


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(",", "").isdigit()
