"""Builds the web page into the package before it is packed, where npm is there.

Without npm the package is as good, and its server shows a plain page. Set
TIDEWHEEL_WEB=required, as a release does, to fail instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REQUIRED = os.environ.get("TIDEWHEEL_WEB") == "required"


class WebBuild(BuildHookInterface[Any]):
    """Runs `npm ci` and `npm run build`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install is a checkout: `make web` builds there."""
        del build_data
        if version == "editable":
            return
        web = Path(self.root) / "web"
        npm = shutil.which("npm")
        if npm is None or not (web / "package.json").is_file():
            self._missing("npm is not here" if npm is None else "web/package.json is not here")
            return
        try:
            if not (web / "node_modules").is_dir():
                subprocess.run([npm, "ci", "--silent"], cwd=web, check=True)
            subprocess.run([npm, "run", "--silent", "build"], cwd=web, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self._missing(str(error))

    def _missing(self, reason: str) -> None:
        text = f"the web page was not built: {reason}; the server will show a plain page"
        if REQUIRED:
            raise RuntimeError(text)
        self.app.display_warning(text)
