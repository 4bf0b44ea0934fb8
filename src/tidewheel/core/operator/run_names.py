"""What a run may be called: its name is a folder, too, below the state directory."""

from __future__ import annotations

from collections.abc import Iterator

from tidewheel.core.queue.submission import NAME_LENGTH_MAX

PART_BYTES_MAX = 200  # a folder's name; what is put beside it needs some room
ACCEPTED = (
    f"a name of up to {NAME_LENGTH_MAX} printable characters; its parts between / may not be "
    f"empty, '.' or '..', begin with '-' or have more than {PART_BYTES_MAX} bytes"
)


def is_run_name(name: str) -> bool:
    """Whether it leads to a folder of its own, and nowhere else (RELIABILITY S3)."""
    return (
        bool(name.strip())
        and len(name) <= NAME_LENGTH_MAX
        and name.isprintable()
        and all(map(_is_part, name.split("/")))
    )


def _is_part(part: str) -> bool:
    size = len(part.encode(errors="replace"))
    return 0 < size <= PART_BYTES_MAX and part not in (".", "..") and not part.startswith("-")


def names_above(name: str) -> Iterator[str]:
    """The names whose folders this one would lie in."""
    parts = name.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))
