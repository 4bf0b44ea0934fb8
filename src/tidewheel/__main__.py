"""Is the program ``tidewheel``, also as ``python -m tidewheel``."""

import gc
import os
import sys
from contextlib import suppress

from tidewheel import __version__

# Objects that came and stayed; by default 700. A run of one task loads 69,000 with its modules.
GARBAGE_THRESHOLD = 200_000


def main() -> None:
    """Tells the version, for which no library of commands is loaded, or runs a command."""
    if sys.argv[1:] == ["--version"]:
        with suppress(OSError):  # nobody reads it: a command knows what that means
            os.write(1, f"tidewheel {__version__}\n".encode())
            return
    # Modules that are being loaded leave nothing to collect; to look for it takes time.
    gc.set_threshold(GARBAGE_THRESHOLD)
    from tidewheel.cli.main import main as run_command  # noqa: PLC0415

    run_command()


if __name__ == "__main__":
    main()
