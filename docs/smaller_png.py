"""A screenshot with 256 colours, chosen so that none is far off: a third of the bytes."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS_MAX = 256
CHANNELS = 3


def smaller(picture: bytes) -> bytes:
    """The same picture with a palette; only for what Chromium makes: RGB, eight bits each."""
    parts = list(chunks(picture))
    width, height, *kind = struct.unpack(">IIBBBBB", parts[0][1])
    if kind != [8, 2, 0, 0, 0]:
        raise ValueError(f"a PNG of another kind than RGB with 8 bits, not interlaced: {kind}")
    data = zlib.decompress(b"".join(body for name, body in parts if name == b"IDAT"))
    rows = [
        [row[at : at + CHANNELS] for at in range(0, len(row), CHANNELS)]
        for row in unfiltered(data, width * CHANNELS, height)
    ]
    counts = Counter(pixel for row in rows for pixel in row)
    palette = chosen(counts)
    place = {colour: nearest(colour, palette) for colour in counts}
    indices = b"".join(b"\0" + bytes(place[pixel] for pixel in row) for row in rows)
    return SIGNATURE + b"".join(
        (
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            chunk(b"PLTE", b"".join(palette)),
            chunk(b"IDAT", zlib.compress(indices, 9)),
            chunk(b"IEND", b""),
        )
    )


def chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at < len(picture):
        length, name = struct.unpack(">I4s", picture[at : at + 8])
        yield name, picture[at + 8 : at + 8 + length]
        at += length + 12


def chunk(name: bytes, body: bytes) -> bytes:
    return (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    )


def chosen(counts: Counter[bytes]) -> list[bytes]:
    """The most frequent colours, then always the one that is farthest from all before it."""
    palette = [colour for colour, _ in counts.most_common(COLOURS_MAX // 2)]
    far = {colour: min(distance(colour, one) for one in palette) for colour in counts}
    while len(palette) < min(COLOURS_MAX, len(counts)):
        palette.append(max(far, key=far.__getitem__))
        far = {one: min(least, distance(one, palette[-1])) for one, least in far.items()}
    return palette


def nearest(colour: bytes, palette: list[bytes]) -> int:
    return min(range(len(palette)), key=lambda at: distance(colour, palette[at]))


def distance(one: bytes, other: bytes) -> int:
    red, green, blue = one[0] - other[0], one[1] - other[1], one[2] - other[2]
    return red * red + green * green + blue * blue


def unfiltered(data: bytes, length: int, height: int) -> Iterator[bytes]:
    """Rows of pixels; each was written as the difference to what the filter foretells."""
    above = bytes(length)
    for at in range(0, height * (length + 1), length + 1):
        row = bytearray(data[at + 1 : at + 1 + length])
        undo(data[at], row, above)
        above = bytes(row)
        yield above


def undo(kind: int, row: bytearray, above: bytes) -> None:
    for at in range(len(row)) if kind else ():
        left, corner = (row[at - 3], above[at - 3]) if at >= CHANNELS else (0, 0)
        row[at] = (row[at] + foretold(kind, left, above[at], corner)) & 0xFF


def foretold(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 1:
        return left
    if kind == 2:  # noqa: PLR2004 - the numbers of the format's filters
        return up
    if kind == 3:  # noqa: PLR2004
        return (left + up) // 2
    guess = left + up - corner  # the one of the three that is nearest to it
    return min((left, up, corner), key=lambda one: abs(guess - one))
