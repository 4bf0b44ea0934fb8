"""What `make demo` shows: four forecast cycles with real jobs, in a separate store.

You see cycles that overlap within the runahead limit, a model run that needs the one
before it, observations that are fetched again after a failure (fetch in cycle 2), a branch
that a message of the model chooses (flood_warning or fire_watch), and a failure that the graph
handles (check in cycle 3, then smooth).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tidewheel-demo-") as home:
        environment = os.environ | {"TIDEWHEEL_HOME": os.path.join(home, "home")}
        environment.pop("TIDEWHEEL_STORE", None)

        def tidewheel(*arguments: str) -> int:
            print(f"\n$ tidewheel {' '.join(arguments)}", flush=True)
            command = [sys.executable, "-m", "tidewheel", *arguments]
            return subprocess.run(command, env=environment, cwd=home, check=False).returncode

        tidewheel("init", "forecast")
        status = tidewheel("run", "forecast/")
        tidewheel("tree", "forecast")
        tidewheel("why", "forecast", "3/fire_watch")
        tidewheel("log", "forecast", "2/fetch/01", "--err")
        return status


if __name__ == "__main__":
    sys.exit(main())
