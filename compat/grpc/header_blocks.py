"""
Header blocks of one connection (HPACK), read.

::

    block     := field*
    field     := 1 index(7)                          a field that both sides know
               | 01 name(6) value                    one more to know
               | 0000 name(4) value                  one to forget
               | 0001 name(4) value                  one that nobody on the way may learn
               | 001 bytes(5)                        how much is known at most, first in a block
    name      := index, or 0 and text                of a field that both sides know
    text      := huffman 1 | length(7) | bytes
    number(n) := n bits, all of them 1 if more follow: 7 bits each, the lowest first

Known are 61 fields that everybody has, and behind them those that were told last. A client says
nearly the same with every call, so most fields are one byte here, and are never decoded again. The
library at hand looks at each of them anew; it has the tables, and the code of Huffman.

Source: RFC 7541.
"""

from __future__ import annotations

from hpack import HPACKError
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

from logstore.compat.grpc.frames import ErrorCode, Http2Error

HEADER_BYTES_MAX = 64 * 1024
#: what both sides know of the other one's fields at most, unless somebody says otherwise
_TABLE_BYTES_MAX = 4096
_FIELD_BYTES = 32
#: no number needs more bytes behind its first one, and no honest one has them
_MORE_BYTES_MAX = 4

Field = tuple[str, str]


def _text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_KNOWN_TO_ALL: tuple[Field, ...] = tuple(
    (_text_of(name), _text_of(value)) for name, value in HeaderTable.STATIC_TABLE
)


class BlockReader:
    """Reads the blocks of one connection, each of which depends on those before it."""

    __slots__ = ("_bytes_max", "_size_bytes", "_sizes", "_told")

    def __init__(self) -> None:
        #: the latest last, and how much each of them counts
        self._told: list[Field] = []
        self._sizes: list[int] = []
        self._size_bytes = 0
        self._bytes_max = _TABLE_BYTES_MAX

    def read(self, block: bytes) -> list[Field]:
        """
        Return the fields of a block, in their order.

        Raises:
            Http2Error: it is no block, or too long: the ones after it cannot be read either.

        """
        try:
            return self._fields(block)
        except IndexError as error:
            raise _no_block("it ends within a field") from error
        except HPACKError as error:
            raise _no_block(str(error)) from error

    def _fields(self, block: bytes) -> list[Field]:
        fields: list[Field] = []
        size_bytes = position = 0
        told, end = self._told, len(block)
        while position < end:
            first = block[position]
            if first & 0x80:
                if first < 0xFF:  # a number of one byte, as nearly all are
                    index = first & 0x7F
                    position += 1
                else:
                    index, position = _number(block, position, 0x7F)
                # most of all are among those that were told
                place = index - 61
                field = told[-place] if 0 < place <= len(told) else self._known(index)
            elif first & 0x40:
                field, position, count = self._literal(block, position, 0x3F)
                self._learn(field, count + _FIELD_BYTES)
            elif first & 0x20:
                if fields:
                    raise _no_block("a size within it")
                self._bytes_max, position = _number(block, position, 0x1F)
                if self._bytes_max > _TABLE_BYTES_MAX:
                    raise _no_block(f"a table of {self._bytes_max} bytes")
                self._shrink()
                continue
            else:
                field, position, _ = self._literal(block, position, 0x0F)
            fields.append(field)
            size_bytes += len(field[0]) + len(field[1]) + _FIELD_BYTES
            if size_bytes > HEADER_BYTES_MAX:
                text = f"headers above {HEADER_BYTES_MAX} bytes"
                raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, text)
        return fields

    def _literal(self, block: bytes, position: int, mask: int) -> tuple[Field, int, int]:
        """Return a field, where it ends, and how many bytes name and value have."""
        index, position = _number(block, position, mask)
        if index:
            name = self._known(index)[0]
            name_bytes = len(name.encode())
        else:
            data, position = _text(block, position)
            name, name_bytes = _text_of(data), len(data)
        data, position = _text(block, position)
        return (name, _text_of(data)), position, name_bytes + len(data)

    def _known(self, index: int) -> Field:
        if 0 < index <= len(_KNOWN_TO_ALL):
            return _KNOWN_TO_ALL[index - 1]
        place = index - len(_KNOWN_TO_ALL)
        if 0 < place <= len(self._told):
            return self._told[-place]
        raise _no_block(f"a field {index} that nobody knows")

    def _learn(self, field: Field, size_bytes: int) -> None:
        self._told.append(field)
        self._sizes.append(size_bytes)
        self._size_bytes += size_bytes
        self._shrink()

    def _shrink(self) -> None:
        """Forget what was told first, until the rest has its place."""
        while self._size_bytes > self._bytes_max:
            del self._told[0]
            self._size_bytes -= self._sizes.pop(0)


def _number(block: bytes, position: int, mask: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    value = block[position] & mask
    position += 1
    if value < mask:
        return value, position
    for shift in range(0, 7 * _MORE_BYTES_MAX, 7):
        byte = block[position]
        position += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise _no_block("a number without end")


def _text(block: bytes, position: int) -> tuple[bytes, int]:
    """Return the bytes of a text, and where it ends."""
    is_coded = block[position] & 0x80
    length, start = _number(block, position, 0x7F)
    end = start + length
    if end > len(block):
        raise _no_block("it ends within a text")
    data = block[start:end]
    return (decode_huffman(data) if is_coded else data), end


def _no_block(why: str) -> Http2Error:
    return Http2Error(ErrorCode.COMPRESSION_ERROR, f"no header block: {why}")
