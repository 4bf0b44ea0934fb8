"""The real docker-compose: asked whether it accepts many files at once, and started quickly."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

# What `docker-compose config` does with each of many files: a process costs half a second.
ASK = """
import json, logging, sys
from compose.config import config
from compose.config.environment import Environment
logging.disable(logging.CRITICAL)
around = Environment({"HOME": "/root", "TIDEWHEEL_ATTEMPT": "1"})
said = []
for path in json.load(sys.stdin):
    try:
        config.load(config.find(sys.argv[1], [path], around))
    except Exception as error:
        said.append(str(getattr(error, "msg", "") or error) or type(error).__name__)
    else:
        said.append("")
json.dump(said, sys.stdout)
"""

# Half of its start-up is setuptools, which puts itself before Python's own distutils.
QUICK = """#!{python}
import runpy, sys
if "_distutils_hack" in sys.modules:
    sys.modules["_distutils_hack"].remove_shim()
sys.argv[0] = {program!r}
runpy.run_path({program!r}, run_name="__main__")
"""


def put_quick_compose(folder: Path) -> None:
    """docker-compose 1, if this machine has it, as a program that starts in half the time."""
    python = interpreter()
    if python is not None:
        there = folder / "docker-compose"
        there.write_text(QUICK.format(python=python, program=shutil.which("docker-compose")))
        there.chmod(0o755)


def interpreter() -> str | None:
    """The Python of docker-compose 1; None if there is no such docker-compose."""
    program = shutil.which("docker-compose")
    if program is None:
        return None
    with Path(program).open("rb") as file:
        first = file.readline().decode(errors="replace").strip()
    return first.removeprefix("#!").split()[0] if first.startswith("#!") else None


def refusals(texts: list[str], folder: Path) -> list[str]:
    """Why docker-compose refuses each of these files; "" where it accepts it."""
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.yaml"
        path.write_text(text)
        paths.append(str(path))
    python = interpreter()
    assert python is not None
    asked = subprocess.run(
        (python, "-c", ASK, str(folder)),
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)
