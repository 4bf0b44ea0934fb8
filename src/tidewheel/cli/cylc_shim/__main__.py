"""`python -m tidewheel.cli.cylc_shim VERB …`, quick: a job may say something every second."""

from __future__ import annotations

import sys

from tidewheel.cli.cylc_shim.speaking import message

if __name__ == "__main__":
    if sys.argv[1:2] == ["message"]:
        sys.exit(message(sys.argv[2:]))
    from tidewheel.cli.cylc_shim.program import main

    sys.exit(main(sys.argv[1:]))
