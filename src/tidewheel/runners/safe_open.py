"""Opening files in folders where jobs may have put anything (S11).

Every folder below the root is entered by itself, without following a link. What lies at the end
is looked at before it is opened: a pipe would be waited for, and a device may do something when
it is opened.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from tidewheel.errors import Refused

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_plain(root: Path, path: Path) -> BinaryIO:
    """A plain file below the root; FileNotFoundError if there is nothing, Refused for the rest.

    The root itself may be a link: it is this user's, and no job is told to write there.
    """
    try:
        parts = path.relative_to(root).parts
    except ValueError:
        raise Refused(f"{path} is not below {root}, so it is not read") from None
    if not parts or ".." in parts:
        raise Refused(f"{path} is no file below {root}, so it is not read")
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            following = os.open(part, _LOOK, dir_fd=descriptor)
        except NotADirectoryError:
            raise Refused(_NOT_PLAIN.format(path=path)) from None
        finally:
            os.close(descriptor)
        descriptor = following
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused(_NOT_PLAIN.format(path=path))
        # The very file that was looked at, whatever has the name by now.
        return open(f"/proc/self/fd/{descriptor}", "rb")
    finally:
        os.close(descriptor)


_NOT_PLAIN = "{path} is no plain file, or a link leads there, so it is not read"
