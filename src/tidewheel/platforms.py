"""Reads the platforms that a definition can name, from a file of the state directory."""

from __future__ import annotations

from pathlib import Path

from tidewheel.config import COMMAND_RUNNERS, SHELL
from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import dataclass

PLATFORMS_FILE = "platforms.toml"
PLATFORM_RUNNERS = (SHELL, *COMMAND_RUNNERS)  # of commands, as jobs of runs are


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """Says what `platform = NAME` in a definition means on this host."""

    name: str
    runner: str = SHELL
    labels: tuple[str, ...] = ()  # further ones that a worker must offer
    directives: tuple[tuple[str, str], ...] = ()  # where a task does not say otherwise

    def __post_init__(self) -> None:
        if self.runner not in PLATFORM_RUNNERS:
            accepted = " or ".join(PLATFORM_RUNNERS)
            raise BadSetting(f"runner of platform {self.name}", self.runner, accepted)


def read_platforms(home: Path) -> dict[str, Platform]:
    """Returns the platforms of a state directory, by name; an empty dictionary if it has no
    file ``platforms.toml``."""
    path = home / PLATFORMS_FILE
    try:
        text = path.read_text(encoding="utf-8")
        import tomllib

        tables = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        fault = f"{path} cannot be read: {error}; expected TOML: [NAME], then runner = …"
        raise BadSetting(str(path), str(error), fault=fault) from error
    return {name: _platform(path, name, table) for name, table in tables.items()}


def _platform(path: Path, name: str, table: object) -> Platform:
    accepted = 'runner = "slurm", labels = ["…"] and a table directives'
    if not isinstance(table, dict) or not table.keys() <= {"runner", "labels", "directives"}:
        raise BadSetting(f"[{name}] of {path}", table, accepted)
    labels, directives = table.get("labels", []), table.get("directives", {})
    if not isinstance(labels, list) or not isinstance(directives, dict):
        raise BadSetting(f"[{name}] of {path}", table, accepted)
    return Platform(
        name=name,
        runner=str(table.get("runner", SHELL)),
        labels=tuple(map(str, labels)),
        # ``exclusive = true`` is a directive without a value.
        directives=tuple(
            (str(key), "" if value is True else str(value)) for key, value in directives.items()
        ),
    )
