"""RELIABILITY 37: a network in which packets vanish is noticed, and nobody waits for ever."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.patience import allowed
from tidewheel.config import StoreSettings
from tidewheel.store.postgres import connect

ROOT = Path(__file__).parents[2]


def test_a_cut_that_nobody_announces_ends_calls_and_heals(postgres_url):
    missing = [name for name in ("unshare", "ip", "iptables") if not shutil.which(name)]
    if os.getuid() != 0 or missing:
        pytest.skip(f"only root can cut a network; missing here: {missing}")
    with psycopg.connect(postgres_url) as connection:
        folder, database = connection.info.host, connection.info.dbname
    command = ["unshare", "--net", sys.executable, "-m", "tests.support.partition"]
    done = subprocess.run(
        [*command, f"{folder}/.s.PGSQL.5432", database],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=allowed(50),
        check=False,
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("this machine lets nobody make a network of his own")
    assert done.returncode == 0, done.stderr
    before, during, after = json.loads(done.stdout)
    assert (before["outcome"], after["outcome"]) == ("stored", "stored")
    assert during["outcome"] == "store_unreachable"


def test_every_connection_watches_its_network_unless_its_address_says_how(postgres_url):
    with connect(StoreSettings(url=postgres_url)) as connection:
        parameters = connection.info.get_parameters()
    assert parameters["keepalives_idle"] == "10" and int(parameters["tcp_user_timeout"]) > 0
    with connect(StoreSettings(url=f"{postgres_url}&keepalives_idle=77")) as connection:
        assert connection.info.get_parameters()["keepalives_idle"] == "77"
