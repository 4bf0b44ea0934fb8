"""Real Docker Engines for tests: each in a network namespace of its own, with one small image.

An engine is a containerd and a dockerd, so that a kill -9 of dockerd is what it is on a real
machine: containers and their shims live on. There is no registry; the image is made of
busybox. Two engines can be joined to a Swarm. Everything is gone when the block ends.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from tests.support.debian_packages import Part
from tests.support.patience import allowed, eventually, eventually_told

IMAGE = "busybox:test"
DOCKER = Part(
    name="Docker",
    programs=("dockerd", "containerd", "docker", "docker-compose", "busybox", "iptables", "ip"),
    packages=("docker.io", "docker-compose", "busybox-static", "iptables", "iproute2"),
)
START_SECONDS_MAX = 90.0
STUCK_SECONDS = (
    45.0  # after which one that was killed before, and does not answer, is begun anew
)
HALF_MADE = "libnetwork.(*controller).reservePools"  # where it panics
STOP_SECONDS_MAX = 15.0
LEFT_SECONDS_MAX = 60.0


class PrivateEngine:
    """One engine; ``environment`` makes the docker command line speak to it."""

    def __init__(self, name: str, folder: Path, namespace: str) -> None:
        self.name = name
        self.folder = folder
        self.namespace = namespace
        folder.mkdir(parents=True)
        self.address = f"unix://{folder}/docker.sock"
        self.miscounted: set[str] = set()  # networks that it will never remove
        self._containerd: subprocess.Popen[bytes] | None = None
        self._dockerd: subprocess.Popen[bytes] | None = None
        self._begun_at = 0.0

    @property
    def environment(self) -> dict[str, str]:
        return {"DOCKER_HOST": self.address}

    def start(self, *options: str) -> None:
        """Start whatever of it does not run, and wait until it answers."""
        folder = self.folder
        if self._containerd is None:
            self._containerd = self._begin(
                "containerd",
                *("--root", f"{folder}/croot", "--state", f"{folder}/cstate"),
                *("--address", f"{folder}/containerd.sock"),
            )
            eventually(
                lambda: _accepts(folder / "containerd.sock"), "containerd", START_SECONDS_MAX
            )
        self._begin_dockerd(options)
        eventually(
            lambda: self._answers(options), f"engine {self.name} in {folder}", START_SECONDS_MAX
        )

    def _begin_dockerd(self, options: tuple[str, ...]) -> None:
        folder = self.folder
        (folder / "dockerd.pid").unlink(missing_ok=True)
        self._begun_at = time.monotonic()
        self._dockerd = self._begin(
            "dockerd",
            *("--containerd", f"{folder}/containerd.sock", "--host", self.address),
            *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
            *("--pidfile", f"{folder}/dockerd.pid", *options),
        )

    def _answers(self, options: tuple[str, ...]) -> bool:
        """Whether it is there; one that gave up, as over a lock that is held, tries again.

        So does one that hangs. One that was killed while it made a network panics at every
        start over what it wrote of that (Docker 20.10): its operator removes what it knows of
        networks, and so does this.
        """
        assert self._dockerd is not None
        if self._dockerd.poll() is not None:
            if HALF_MADE in (self.folder / "dockerd.log").read_text(errors="replace"):
                (self.folder / "data/network/files/local-kv.db").unlink(missing_ok=True)
            self._begin_dockerd(options)
        if self.succeeds("version"):
            return True
        if time.monotonic() - self._begun_at > allowed(STUCK_SECONDS):
            self.kill()
            self._begin_dockerd(options)
        return False

    def kill(self) -> None:
        """kill -9 of dockerd; its containers live on, without anybody who knows them."""
        assert self._dockerd is not None
        self._dockerd.kill()
        self._dockerd.wait()
        self._dockerd = None

    def docker(self, *arguments: str) -> str:
        """What the docker command says; it must succeed."""
        done = self._run(arguments)
        assert done.returncode == 0, f"docker {arguments}: {done.stderr}"
        return done.stdout.strip()

    def said(self, *arguments: str) -> str:
        """What the docker command says, whether it succeeds or not."""
        done = self._run(arguments)
        return done.stdout + done.stderr

    def succeeds(self, *arguments: str) -> bool:
        return self._run(arguments).returncode == 0

    def rows(self, *arguments: str) -> list[dict[str, str]]:
        """The rows of a listing."""
        text = self.docker(*arguments, "--format", "{{json .}}")
        return [json.loads(line) for line in text.splitlines()]

    def left_behind(self) -> dict[str, list[str]]:
        """The names of whatever tidewheel ever made here and did not remove."""
        found = {
            "containers": [one["Names"][0] for one in self._ask("/containers/json?all=1&")],
            "networks": [
                one["Name"]
                for one in self._ask("/networks?")
                if one["Name"] not in self.miscounted
            ],
            "volumes": [one["Name"] for one in self._ask("/volumes?")["Volumes"] or []],
            "services": [one["Spec"]["Name"] for one in self._ask("/services?")],
        }
        return {kind: names for kind, names in found.items() if names}

    def has_only_miscounted(self) -> bool:
        """Whether all that is left are networks that the engine keeps for ever. Under load
        Docker 20 may miscount who is in one: it lists nobody, and refuses to remove it because
        of active endpoints, to anybody, until it is started anew. What can be removed here a
        worker could have removed, too."""
        left = self.left_behind()
        for network in left.pop("networks", []):
            inside = self.said("network", "inspect", "--format", "{{len .Containers}}", network)
            if inside.strip() != "0" or "has active endpoints" not in self.said(
                "network", "rm", network
            ):
                return False
            print(f"{self.name}: Docker keeps {network}, in which it lists nobody")
            self.miscounted.add(network)
        return not left

    def _ask(self, path: str) -> Any:
        """What the engine itself lists of tidewheel's; a tenth of what the program costs."""
        filters = quote(json.dumps({"label": ["tidewheel.runner"]}))
        with closing(_Socket(self.folder / "docker.sock")) as connection:
            connection.request("GET", f"{path}filters={filters}")
            answer = connection.getresponse()
            listed = json.loads(answer.read())
        if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:  # of services: it manages no Swarm
            return []
        assert answer.status == HTTPStatus.OK, listed
        return listed

    def clear_containers(self) -> None:
        """Remove all containers and services, whoever made them."""
        if self.succeeds("node", "ls"):
            for service in self.docker("service", "ls", "-q").split():
                self._run(("service", "rm", service))  # or somebody else just has
        if containers := self.docker("ps", "-aq").split():
            self._run(("rm", "-f", "-v", *containers))

    def clear(self) -> None:
        """Remove everything that nobody uses any more, too."""
        self.clear_containers()
        self._run(("network", "prune", "-f"))
        if volumes := self.docker("volume", "ls", "-q").split():
            self._run(("volume", "rm", "-f", *volumes))

    def make_image(self, root: Path) -> None:
        packed = subprocess.run(("tar", "-C", root, "-c", "."), capture_output=True, check=True)
        made = subprocess.run(
            ("docker", "import", "-c", "ENV PATH=/bin", "-", IMAGE),
            input=packed.stdout,
            env={**os.environ, **self.environment},
            capture_output=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr

    def stop(self) -> None:
        """End it with all of its containers."""
        with suppress(AssertionError, subprocess.SubprocessError):
            if self._dockerd is None:
                self.start()
            self.clear()
        for process in (self._dockerd, self._containerd):
            if process is not None:
                _end(process)
        self._dockerd = self._containerd = None
        _kill_shims(self.folder)
        for mounted in _mounts_below(self.folder):
            subprocess.run(("umount", "-l", mounted), capture_output=True, check=False)

    def _begin(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        # nsenter, not `ip netns exec`: that one mounts /sys anew and hides the cgroups.
        # setpriv: an engine must not outlive tests that were killed.
        entering = ("setpriv", "--pdeathsig", "TERM", "--", "nsenter")
        entering += (f"--net=/run/netns/{self.namespace}", "unshare", "--uts")
        script = 'hostname "$1"; shift; exec "$@"'
        with open(self.folder / f"{program}.log", "ab") as log:
            return subprocess.Popen(
                (*entering, "sh", "-c", script, "sh", self.name, program, *arguments),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
            )

    def _run(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ("docker", *arguments),
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=allowed(60),
            check=False,
        )


class _Socket(http.client.HTTPConnection):
    """HTTP to a socket that is a file."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=allowed(60))
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def until_nothing_is_left(*engines: PrivateEngine) -> None:
    """A node of a Swarm removes its containers by itself, after their service is gone."""
    seen: dict[str, dict[str, list[str]]] = {}

    def is_empty() -> bool:
        seen.update({engine.name: engine.left_behind() for engine in engines})
        return not any(seen.values())

    try:
        eventually_told(is_empty, lambda: f"nothing is left: {seen}", LEFT_SECONDS_MAX)
    except AssertionError:
        if not all(engine.has_only_miscounted() for engine in engines):
            raise


@contextmanager
def running_engines(*names: str) -> Iterator[list[PrivateEngine]]:
    """Engines in namespaces of their own that reach each other at 10.77.N.1, .2, …"""
    mark = secrets.token_hex(4)  # a killed session leaves its own, and numbers come again
    folder = Path(tempfile.mkdtemp(prefix="twe", dir="/tmp"))  # a socket's path is short
    engines = [PrivateEngine(name, folder / name, f"twe{mark}{name}") for name in names]
    try:
        for engine in engines:
            _ip("netns", "add", engine.namespace)
            _ip("-n", engine.namespace, "link", "set", "lo", "up")
        if len(engines) > 1:
            _join_by_cable(engines[0], engines[1])
        root = _image_root(folder / "image")
        for engine in engines:
            engine.start()
            engine.make_image(root)
        yield engines
    finally:
        for engine in engines:
            engine.stop()
            subprocess.run(
                ("ip", "netns", "del", engine.namespace), capture_output=True, check=False
            )
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_swarm() -> Iterator[tuple[PrivateEngine, PrivateEngine]]:
    """A Swarm of a manager `m1` and a worker `w1`."""
    with running_engines("m1", "w1") as (manager, worker):
        manager.docker("swarm", "init", "--advertise-addr", "10.77.0.1")
        token = manager.docker("swarm", "join-token", "-q", "worker")
        join = ("swarm", "join", "--token", token, "10.77.0.1:2377")
        # docker waits for this some seconds, and a node that is slower joins without it.
        eventually_told(
            lambda: _are_ready(manager) or (worker.succeeds(*join) and _are_ready(manager)),
            "both nodes are ready",
            START_SECONDS_MAX,
        )
        try:
            yield manager, worker
        finally:
            manager.clear()
            for engine in (worker, manager):
                engine.succeeds("swarm", "leave", "--force")


def _are_ready(manager: PrivateEngine) -> bool:
    return [row["Status"] for row in manager.rows("node", "ls")] == ["Ready"] * 2


def _join_by_cable(first: PrivateEngine, second: PrivateEngine) -> None:
    ends = ((first.namespace, "va", "10.77.0.1/24"), (second.namespace, "vb", "10.77.0.2/24"))
    _ip(
        *("link", "add", "va", "netns", first.namespace, "type", "veth"),
        *("peer", "name", "vb", "netns", second.namespace),
    )
    for namespace, device, address in ends:
        _ip("-n", namespace, "addr", "add", address, "dev", device)
        _ip("-n", namespace, "link", "set", device, "up")


def _image_root(root: Path) -> Path:
    for name in ("bin", "etc", "tmp"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, root / "bin" / "busybox")
    applets = subprocess.run((busybox, "--list"), capture_output=True, text=True, check=True)
    for applet in set(applets.stdout.split()) - {"busybox"}:
        (root / "bin" / applet).symlink_to("busybox")
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    return root


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True, capture_output=True)


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _kill_shims(folder: Path) -> None:
    """Containers that an engine lost sight of, each with the process that holds it."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if f"{folder}/containerd.sock" in process.cmdline():
                for each in (*process.children(recursive=True), process):
                    each.kill()


def _mounts_below(folder: Path) -> list[str]:
    rows = Path("/proc/self/mounts").read_text().splitlines()
    points = [row.split()[1] for row in rows]
    return sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True)
