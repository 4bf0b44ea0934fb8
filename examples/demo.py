"""What `make demo` shows: four forecast cycles, run for real, in a store of their own.

Things to see: cycles that overlap within the runahead limit, a model run that needs the one
before it, observations that are fetched again after a failure (fetch in cycle 2), a branch
taken by what the model says (flood_warning or fire_watch), and a failure that the graph
handles (check in cycle 3, then mend).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

FORECAST = Path(__file__).with_name("forecast")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tidewheel-demo-") as home:
        environment = os.environ | {"TIDEWHEEL_HOME": home}
        environment.pop("TIDEWHEEL_STORE", None)

        def tidewheel(*arguments: str) -> int:
            print(f"\n$ tidewheel {' '.join(arguments)}", flush=True)
            command = [sys.executable, "-m", "tidewheel", *arguments]
            return subprocess.run(command, env=environment, check=False).returncode

        status = tidewheel("run", str(FORECAST))
        tidewheel("tree", "forecast")
        tidewheel("why", "forecast", "3/fire_watch")
        tidewheel("log", "forecast", "2/fetch/01", "--err")
        return status


if __name__ == "__main__":
    sys.exit(main())
