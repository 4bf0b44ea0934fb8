"""What an event handler finds in its environment: the run, and a voice to command with."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from pathlib import Path

from tidewheel.core.queue.requests import UsageSample
from tidewheel.runners.job_environment import SECRET, inherited_environment
from tidewheel.runners.process_tree import MARKER


class Unheard:
    """A handler may give commands; what it would report of itself concerns nobody."""

    def started(self) -> None: ...
    def progress(self, value: float) -> None: ...
    def message(self, text: str, output: str | None = None) -> None: ...
    def usage(self, sample: UsageSample) -> None: ...


def handler_environment(
    environ: Mapping[str, str], run_name: str, run_directory: Path, programs: Path, secret: str
) -> dict[str, str]:
    """All that a handler sees; `programs` has the `tidewheel` and `cylc` of this process."""
    inherited = inherited_environment(environ)
    path = (str(run_directory / "bin"), str(programs), inherited["PATH"])
    workflow = {
        "WORKFLOW_ID": run_name,
        "WORKFLOW_NAME": run_name.rpartition("/")[0] or run_name,
        "WORKFLOW_RUN_DIR": str(run_directory),
        "WORKFLOW_LOG_DIR": str(run_directory / "log" / "scheduler"),
        "WORKFLOW_SHARE_DIR": str(run_directory / "share"),
        "WORKFLOW_WORK_DIR": str(run_directory / "work"),
    }
    return {
        **inherited,
        "USER": user_name(),
        "PATH": os.pathsep.join(path),
        "TIDEWHEEL_RUN_DIR": str(run_directory),
        MARKER: str(handler_folder(run_directory)),
        SECRET: secret,
        **{f"TIDEWHEEL_{name}": value for name, value in workflow.items()},
        **{f"CYLC_{name}": value for name, value in workflow.items()},
    }


def handler_folder(run_directory: Path) -> Path:
    """Where the link to the socket of its voice lies."""
    return run_directory / "log" / "scheduler" / "handlers"


def user_name() -> str:
    """Who we are; a number if this machine knows no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
