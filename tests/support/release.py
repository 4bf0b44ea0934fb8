"""The wheel that `make dist` packs, and the ways in which people install it.

The page is packed as it lies in this tree (`make web`); the documentation is built for it.
Where packages come from is the machine's business: what pip is told there, uv is told, too.
"""

from __future__ import annotations

import ast
import os
import runpy
import shutil
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

from tests.support.patience import allowed

ROOT = Path(__file__).resolve().parents[2]
INSTALLERS = ROOT / "requirements" / "installers.txt"
BASE_PYTHON = Path(sys.base_prefix, "bin", "python3")
BESIDE = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", ".gitignore")
FOLDERS = ("examples", "deploy/systemd")  # which the wheel has beside the package
INSTALL_SECONDS_MAX = 90
# What an ordinary machine has; neither git nor npm, and no compiler.
PLAIN_PROGRAMS = (
    *("bash", "sh", "env", "cat", "cp", "date", "dirname", "head", "ls", "mkdir", "mv"),
    *("readlink", "rm", "sed", "seq", "sleep", "sort", "tail", "touch", "tr", "uname"),
)


def packed(folder: Path) -> Path:
    """The wheel of a tree with the package that lies there already."""
    for name in BESIDE:
        shutil.copyfile(ROOT / name, folder / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name)
    (folder / "web").mkdir()  # without its sources: the page is packed as it is, not built
    shutil.copyfile(ROOT / "web" / "hatch_build.py", folder / "web" / "hatch_build.py")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    [wheel] = (folder / "dist").glob("*.whl")
    return wheel


def released_wheel(folder: Path) -> Path:
    """The wheel with page, documentation and examples; of the tree nothing is left."""
    tree = folder / "tree"
    skipped = shutil.ignore_patterns("__pycache__", "manual_pages")
    shutil.copytree(ROOT / "src", tree / "src", ignore=skipped)
    builder = runpy.run_path(str(ROOT / "docs/build_site.py"))
    wrong = builder["build"](folder / "work", tree / "src/tidewheel/server/manual_pages")
    assert wrong == ""
    wheel = shutil.copy(packed(tree), folder)
    shutil.rmtree(tree)
    shutil.rmtree(folder / "work")
    return Path(wheel)


class Installer:
    """Somebody with an empty home on a machine with Python, and one way to install things."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder, self.tools = folder, tools
        programs = folder / "programs"
        programs.mkdir(parents=True)
        for name in PLAIN_PROGRAMS:
            found = shutil.which(name)
            assert found is not None, name
            (programs / name).symlink_to(found)
        self.environment = {
            **index_settings(),
            "HOME": str(folder),
            "PATH": str(programs),
            "LANG": "C.UTF-8",
        }

    def pip(self, wheel: Path) -> Path:
        """`python -m venv`, then pip in it, with the extras that servers of a site want."""
        place = self.folder / "environment"
        self._run(BASE_PYTHON, "-m", "venv", place)
        named = f"{wheel}[postgres,gpu]"
        self._run(place / "bin" / "pip", "install", "--only-binary", ":all:", named)
        return place / "bin" / "tidewheel"

    def uv(self, wheel: Path) -> Path:
        """`uv tool install`."""
        self._run(self.tools / "uv", "tool", "install", "--python", BASE_PYTHON, wheel)
        return self.folder / ".local" / "bin" / "tidewheel"

    def pipx(self, wheel: Path) -> Path:
        """`pipx install`."""
        self._run(self.tools / "pipx", "install", "--python", BASE_PYTHON, wheel)
        return self.folder / ".local" / "bin" / "tidewheel"

    def _run(self, *words: object) -> None:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=allowed(INSTALL_SECONDS_MAX),
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)


def made_tools(folder: Path) -> Path:
    """The folder of uv and pipx, which lie in an environment of their own."""
    venv.create(folder, with_pip=False)
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    command = [*pip, "--require-hashes", "--requirement", str(INSTALLERS)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ})
    return folder / "bin"


@cache
def index_settings() -> dict[str, str]:
    """Where this machine takes packages from, as pip and uv read it from their environment."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    settings: dict[str, str] = {}
    # What is in the environment comes last: it counts more than files.
    for line in sorted(done.stdout.splitlines(), key=lambda text: text.startswith(":env:")):
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = " ".join(ast.literal_eval(value).split())
    for_uv = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "cert": "SSL_CERT_FILE",
    }
    told = {f"PIP_{name.upper().replace('-', '_')}": text for name, text in settings.items()}
    told |= {for_uv[name]: text for name, text in settings.items() if name in for_uv}
    return told | {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # as pip chooses


def release_folder(folder: Path) -> Path:
    """What `make dist` leaves, as far as an image is made of it."""
    folder.mkdir()
    released_wheel(folder)
    shutil.copyfile(ROOT / "requirements" / "runtime.txt", folder / "requirements.txt")
    for name in ("Dockerfile", "compose.yml", "Caddyfile"):
        (folder / "deploy" / "compose").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / f"deploy/compose/{name}", folder / f"deploy/compose/{name}")
    return folder
