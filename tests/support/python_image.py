"""An image with Python for a private engine, which has no registry: of this machine's files.

It stands for `python:3.12-slim`: Python and pip in /usr/local, a shell, what makes users. Its
pip takes packages from a folder of the image and from nowhere else: the engine has no network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import pip

from tests.support.container_engine import PrivateEngine
from tests.support.patience import allowed

IMAGE = "python:test"
ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements" / "runtime.txt"
PROGRAMS = (
    *("sh", "bash", "env", "cat", "echo", "id", "install", "ls", "mkdir", "rm", "sleep"),
    *("true", "useradd"),
)
# Of libc and the compiler, which packages with parts in C want.
LIBRARIES = (
    *("libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libresolv.so.2"),
    *("libnss_files.so.2", "libnss_dns.so.2", "libgcc_s.so.1", "libstdc++.so.6"),
)
SEARCHED = os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/sbin"))
UNNEEDED = shutil.ignore_patterns(
    *("__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter"),
    *("ensurepip", "lib2to3", "config-*", "EXTERNALLY-MANAGED"),
)
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/shadow": "root:*:19000:0:99999:7:::\n",
    "etc/gshadow": "root:*::\n",
    "etc/login.defs": "UID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\n"
    "USERGROUPS_ENAB yes\n",
    "etc/ld.so.conf": "/usr/local/lib\n",
    "etc/pip.conf": "[global]\nno-index = true\nfind-links = /wheels\n",
    "usr/local/bin/pip": '#!/bin/sh\nexec python -m pip "$@"\n',
}


def make_python_image(engine: PrivateEngine, root: Path) -> None:
    """Import it into an engine as `python:test`."""
    for name in ("tmp", "root", "home", "proc", "sys", "dev", "etc/skel", "usr/src", "var/lib"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for link in ("bin", "sbin", "lib", "lib64"):  # as they are on this machine
        if Path("/", link).is_symlink():
            (root / "usr" / link).mkdir(parents=True, exist_ok=True)
            (root / link).symlink_to(f"usr/{link}")
    programs = [
        Path(found) for name in PROGRAMS if (found := shutil.which(name, path=SEARCHED))
    ]
    assert len(programs) == len(PROGRAMS), programs
    for path in programs:
        _put(path, root)
    libraries = _put_python(root)
    for path in _needed_by([*programs, *libraries]):
        _put(path, root)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "usr/local/bin/pip").chmod(0o755)
    subprocess.run(("ldconfig", "-r", root), check=True, env={"PATH": SEARCHED})
    _download(root / "wheels")
    _import(engine, root)


def _put_python(root: Path) -> list[Path]:
    """Python as it is here, moved to /usr/local; returns its libraries."""
    local, version = root / "usr" / "local", f"python{sysconfig.get_python_version()}"
    standard = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(standard, local / "lib" / version, ignore=UNNEEDED, symlinks=True)
    (local / "bin").mkdir()
    own = Path(sys.base_prefix, "bin", version).resolve()
    shutil.copy(own, local / "bin" / version)
    for name in ("python", "python3"):
        (local / "bin" / name).symlink_to(version)
    packages = local / "lib" / version / "site-packages"
    shutil.copytree(Path(pip.__file__).parent, packages / "pip", ignore=UNNEEDED)
    shared = sysconfig.get_config_var("INSTSONAME")
    found = Path(sys.base_prefix, "lib", shared)
    if shared.endswith(".so.1.0") and found.exists():  # else it is within the program
        shutil.copy(found, local / "lib" / shared)
    return [own, *(standard / "lib-dynload").glob("*.so")]


def _needed_by(files: Iterable[Path]) -> set[Path]:
    """The shared libraries that these load, and the loader."""
    command = ("ldd", *(str(path) for path in files))
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = set(re.findall(r"(?:=> |^\t)(/[^\s:]+) \(0x", listed, re.MULTILINE))
    loaded = {Path(path) for path in found if "/libpython" not in path}
    [libc] = (path for path in loaded if path.name == "libc.so.6")
    more = (libc.with_name(name) for name in LIBRARIES)
    return loaded | {path for path in more if path.exists()}


def _put(path: Path, root: Path) -> None:
    """The file at its place, whatever links lead to it."""
    target = root / path.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(path, target)


def _download(folder: Path) -> None:
    """What the lock of a release names, each checked by its hash."""
    words = ("download", "--quiet", "--require-hashes", "--only-binary", ":all:")
    subprocess.run(
        [sys.executable, "-m", "pip", *words, "--requirement", LOCK, "--dest", folder],
        check=True,
        capture_output=True,
    )


def _import(engine: PrivateEngine, root: Path) -> None:
    environment = {**os.environ, **engine.environment}
    search = "/usr/local/local/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    with subprocess.Popen(("tar", "-C", root, "-c", "."), stdout=subprocess.PIPE) as packing:
        made = subprocess.run(
            ("docker", "import", "-c", f"ENV PATH={search}", "-", IMAGE),
            stdin=packing.stdout,
            env=environment,
            capture_output=True,
            timeout=allowed(60),
            check=False,
        )
    assert made.returncode == 0, made.stderr
