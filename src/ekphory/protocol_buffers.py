"""Messages of Protocol Buffers as bytes: enough to find a field, or to leave some out.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _WITH_LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}


@dataclass(frozen=True, slots=True)
class MessageField:
    """One field of a message.

    Attributes:
        number: Which one.
        value: A whole number, or the bytes of what has a length of its own or a fixed one.
        encoded: The whole field.
    """

    number: int
    value: int | bytes
    encoded: memoryview


def read_fields(message: bytes) -> Iterator[MessageField]:
    """Yield the fields of a message in order.

    Raises:
        IndexError, KeyError: It is none, or damaged.
    """
    view, place = memoryview(message), 0
    while place < len(view):
        start = place
        tag, place = _read_number(view, place)
        kind = tag & 7
        value: int | bytes
        if kind == _VARINT:
            value, place = _read_number(view, place)
        else:
            length, place = (
                _read_number(view, place) if kind == _WITH_LENGTH else (_FIXED[kind], place)
            )
            value = bytes(view[place : place + length])
            place += length
        yield MessageField(tag >> 3, value, view[start:place])


def encode_field(number: int, content: bytes) -> bytes:
    """Return a field with these bytes."""
    return encode_number(number << 3 | _WITH_LENGTH) + encode_number(len(content)) + content


def encode_number(number: int) -> bytes:
    """Return a whole number: seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _read_number(view: memoryview, place: int) -> tuple[int, int]:
    """Read a whole number; return it and the place after it."""
    value = shift = 0
    while True:
        byte = view[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
