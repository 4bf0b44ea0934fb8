"""A site of several machines on this one: each has a name, a network and a home of its own.

A machine is a network namespace on a bridge, entered with a host name of its own (UTS
namespace), so that nobody on it takes a process of another machine for a neighbour. Servers and
schedulers run on the first machine, where the database is; workers reach servers by TLS only.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.fleet import Program
from tests.support.run_crew import RunCrew
from tidewheel.client.tokens import make_token
from tidewheel.core.queue.access import EVERYTHING, Grant, Scope
from tidewheel.errors import Unavailable
from tidewheel.runners.job_environment import known_home_id
from tidewheel.wiring.machine import this_process

PROGRAMS = ("ip", "nsenter", "unshare", "openssl")
ENTER = 'hostname "$0"; exec "$@"'
PORT_FIRST = 8460


class Network:
    """A bridge, and machines that hang on it."""

    def __init__(self, machines: int) -> None:
        # Several tests may have one at a time, and a killed session leaves its own behind.
        mark = secrets.token_hex(3)
        self.subnet = f"10.{87 + secrets.randbelow(100)}.{secrets.randbelow(250)}"
        self.bridge = f"twb{mark}"
        self.machines = [f"tw{mark}m{n}" for n in range(machines)]

    @property
    def address(self) -> str:
        """Of the machine with the database."""
        return f"{self.subnet}.1"

    def make(self) -> None:
        run_ip("link", "add", self.bridge, "type", "bridge")
        run_ip("address", "add", f"{self.address}/24", "dev", self.bridge)
        run_ip("link", "set", self.bridge, "up")
        for number, machine in enumerate(self.machines):
            self._add(machine, f"{self.subnet}.{10 + number}/24")

    def _add(self, machine: str, address: str) -> None:
        outside, inside = f"{machine}o", f"{machine}i"
        run_ip("netns", "add", machine)
        run_ip("link", "add", outside, "type", "veth", "peer", "name", inside)
        run_ip("link", "set", outside, "master", self.bridge, "up")
        run_ip("link", "set", inside, "netns", machine)
        run_ip("-n", machine, "address", "add", address, "dev", inside)
        run_ip("-n", machine, "link", "set", inside, "up")
        run_ip("-n", machine, "link", "set", "lo", "up")

    def unplug(self, machine: str, *, plugged: bool = False) -> None:
        """Packets vanish and nobody says so; again with ``plugged`` they travel."""
        run_ip("link", "set", f"{machine}o", "up" if plugged else "down")

    def remove(self) -> None:
        for machine in self.machines:
            run_ip("netns", "delete", machine, check=False)
            run_ip("link", "delete", f"{machine}o", check=False)
        run_ip("link", "delete", self.bridge, check=False)


def run_ip(*words: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        if "Operation not permitted" in done.stderr:
            pytest.skip("this machine lets nobody make a network of his own")
        raise AssertionError(f"ip {' '.join(words)}: {done.stderr}")


class Site(RunCrew):
    """A crew whose workers are on other machines and know nothing but servers."""

    def __init__(self, folder: Path, store: str, network: Network) -> None:
        super().__init__(folder, store)
        self.network = network
        self.certificate, self.key = folder / "cert.pem", folder / "key.pem"
        make_certificate(self.certificate, self.key, network.address)

    def token(self, *scopes: str) -> str:
        grant = Grant(scopes=frozenset(map(Scope, scopes)), names=EVERYTHING)
        text, _ = self.look(lambda store: make_token(store, "-".join(scopes), grant))
        return text

    def server(self, number: int = 0) -> Program:
        """Where it listens is known beforehand, so that one that died can come back there."""
        return self.start(
            *("server", "--host", self.network.address, "--port", str(PORT_FIRST + number)),
            *("--certificate", str(self.certificate), "--key", str(self.key), "--no-monitor"),
        )

    def url(self, number: int = 0) -> str:
        return f"https://{self.network.address}:{PORT_FIRST + number}"

    def caller(self, url: str, token: str) -> dict[str, str]:
        """What a program elsewhere is told, and nothing of the store."""
        return {
            "TIDEWHEEL_STORE": "",
            "TIDEWHEEL_SERVER": url,
            "TIDEWHEEL_TOKEN": token,
            "TIDEWHEEL_CA": str(self.certificate),
        }

    def worker_at(self, machine: str, url: str, token: str, *arguments: str) -> Program:
        """A worker on another machine, with a home of that machine."""
        home = self.home_of(machine)
        words = ("worker", "--handlers", "jobs:handlers", *arguments)
        return self.start_at(
            machine, *words, **self.caller(url, token), TIDEWHEEL_HOME=str(home)
        )

    def kill_jobs_of(self, machine: str) -> None:
        """As if the machine had lost its power; its workers are dead already."""
        while jobs := self.jobs(self.home_of(machine)):
            for pid in jobs:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def holds_nothing(self, machine: str) -> bool:
        """Whether no lease is left with a worker of this machine."""
        home = known_home_id(self.home_of(machine))
        boot = f"{this_process().boot_id}@{home}"  # workers adopt within one home
        try:
            return not self.look(lambda store: store.orphans(machine, boot))
        except Unavailable:
            return False

    def home_of(self, machine: str) -> Path:
        return self.folder / f"home-{machine}"

    def start_at(self, machine: str, *arguments: str, **environment: str) -> Program:
        """A command of `tidewheel` on another machine."""
        enter = ["unshare", "--uts", "nsenter", f"--net=/run/netns/{machine}"]
        prefix = (*enter, "sh", "-c", ENTER, machine)
        return self.start(*arguments, prefix=prefix, **environment)


def make_certificate(certificate: Path, key: Path, address: str) -> None:
    """Good for one address, and its own authority."""
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
            ),
            *("-nodes", "-days", "2", "-subj", "/CN=tidewheel test"),
            *("-addext", f"subjectAltName=IP:{address}", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )


@contextmanager
def site(folder: Path, store: str, machines: int) -> Iterator[Site]:
    """For the length of a `with` block."""
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if os.getuid() != 0 or missing:
        pytest.skip(f"only root can make machines; missing here: {missing}")
    network = Network(machines)
    try:
        network.make()
        made = Site(folder, store, network)
        try:
            yield made
        finally:
            made.end()
    finally:
        network.remove()
