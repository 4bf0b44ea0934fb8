"""Processes whose clock is wrong, by libfaketime: found here, or installed for the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.debian_packages import install, one_at_a_time

LIBRARY = "libfaketime.so.1"
FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib")


def skewed_by(offset: str) -> dict[str, str]:
    """The environment of a process that lives so far ahead ("+2h") or behind ("-2h")."""
    library = find_library()
    if library is None:
        pytest.skip("libfaketime is not installed here, and apt-get could not install it")
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": offset,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def forget_clock(pid: int) -> None:
    """A process that was killed leaves the shared memory of its clock behind."""
    for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
        Path("/dev/shm", name).unlink(missing_ok=True)


def find_library() -> Path | None:
    """Where it is; installed where it was not, if this user can."""
    return _find() or _install()


def _find() -> Path | None:
    for folder in FOLDERS:
        for pattern in (f"faketime/{LIBRARY}", f"*/faketime/{LIBRARY}"):
            found = next(Path(folder).glob(pattern), None)
            if found is not None:
                return found
    return None


def _install() -> Path | None:
    with one_at_a_time():
        if _find() is None:
            install("libfaketime", "faketime")
    return _find()
