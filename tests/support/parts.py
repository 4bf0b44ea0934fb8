"""Installs what tests start, before any suite or test counts its seconds: `make parts`."""

from __future__ import annotations

from tests.support.compose_2 import compose_2_folder
from tests.support.container_engine import DOCKER
from tests.support.debian_packages import Part
from tests.support.postgres_binaries import find_binaries
from tests.support.skewed_clock import find_library
from tests.support.slurm_binaries import SLURM

BUBBLEWRAP = Part(name="bubblewrap", programs=("bwrap",), packages=("bubblewrap",))
SYSTEMD = Part(name="systemd", programs=("systemd-analyze",), packages=("systemd",))
NETWORKS = Part(
    name="a network of its own",
    programs=("ip", "iptables", "nsenter", "openssl", "setpriv", "unshare"),
    packages=("iproute2", "iptables", "openssl", "util-linux"),
)

if __name__ == "__main__":
    find_binaries()
    find_library()
    if compose_2_folder() is None:
        print("Tests of docker compose 2 will be skipped: apt-get could not fetch it.")
    for part in (BUBBLEWRAP, NETWORKS, SYSTEMD, DOCKER, SLURM):
        if reason := part.missing_reason():
            print(f"Tests that need {part.name} will be skipped: {reason}.")
