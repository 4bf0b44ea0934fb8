"""Lists that are sent in parts, each of a size that a server takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

BODY_BYTES_MAX = 8 * 1024 * 1024  # that a server takes
FRAME_BYTES_MAX = 1024  # what stands around a list


def in_portions(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """JSON values in order, as many at once as fit; one that is larger goes alone."""
    portion: list[bytes] = []
    size = 0
    for part in parts:
        if portion and size + len(part) + FRAME_BYTES_MAX > BODY_BYTES_MAX:
            yield portion
            portion, size = [], 0
        portion.append(part)
        size += len(part) + 1
    if portion:
        yield portion


def json_list(parts: Iterable[bytes]) -> bytes:
    """A JSON array of what is JSON already."""
    return b"[" + b",".join(parts) + b"]"
