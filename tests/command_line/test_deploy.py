"""`deploy/` says nothing that this program would not understand."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import PROGRAM
from tidewheel.cli.main import cli
from tidewheel.config import ServerSettings, WorkerSettings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
WORKER_EXAMPLE = DEPLOY / "systemd" / "worker.example"
COMPOSE = DEPLOY / "compose" / "compose.yml"


def understood(words):
    """The name and the parameters of a command; a usage error fails the test."""
    given = list(words)
    context = cli.make_context("tidewheel", list(given))
    name, command, rest = cli.resolve_command(context, given)
    assert command is not None
    return name, command.make_context(name, rest, parent=context).params


class Unit(configparser.RawConfigParser):
    """A unit file: names are as they are written, and some come twice."""

    def __init__(self, path):
        super().__init__(strict=False, delimiters=("=",), comment_prefixes=("#",))
        self.optionxform = str
        self.read_string(path.read_text())


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists_again_and_again(path):
    unit = Unit(path)
    service = unit["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert Path(program).name == "tidewheel"
    example = re.search(r"WORKER_OPTIONS=(.*)", WORKER_EXAMPLE.read_text())
    options = shlex.split(example[1])
    words = [w for one in words for w in (options if one == "$WORKER_OPTIONS" else [one])]
    name, _ = understood(words)
    assert path.name.startswith(f"tidewheel-{name}")
    assert service["Restart"] == "always" and unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert service["NoNewPrivileges"] == "yes" and service["User"] != "root"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_is_given_the_time_that_it_needs_to_stop(path):
    """Else the grace would be systemd's to end."""
    longest = ServerSettings().stop_seconds_max
    if "worker" in path.name or "up" in path.name:
        longest = max(longest, WorkerSettings(name="w").grace_seconds)
    assert float(Unit(path)["Service"]["TimeoutStopSec"]) > longest


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_understands_each_unit(path, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("this machine has no systemd")
    there = tmp_path / path.name
    there.write_text(path.read_text().replace("/usr/local/bin/tidewheel", str(PROGRAM)))
    done = subprocess.run(
        ["systemd-analyze", "verify", there], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if path.stem.rstrip("@") in line]
    assert ours == []


def test_h3_the_unit_of_workers_shares_no_user_folder_or_file_with_those_at_the_database():
    """Jobs run as the worker's user and can read whatever that user can."""
    units = {path.stem.removeprefix("tidewheel-"): Unit(path)["Service"] for path in UNITS}
    worker = units["worker@"]
    for name in ("server", "scheduler", "monitor"):
        for key in ("User", "StateDirectory", "EnvironmentFile", "Environment"):
            assert worker[key] != units[name][key], (name, key)
    program, *words = shlex.split(worker["ExecStart"])[:-1]
    options = understood(words)[1]
    assert program[0] == "!"  # root, until the worker has read its token
    assert options["user"] == worker["User"] != "root"
    assert options["token_file"] not in worker["EnvironmentFile"]
    example = dict(
        line.split("=", 1) for line in WORKER_EXAMPLE.read_text().splitlines() if line[0] != "#"
    )
    assert example.keys() == {"TIDEWHEEL_SERVER", "WORKER_OPTIONS"}
    assert example["TIDEWHEEL_SERVER"].startswith("https://")


def test_s25_the_drop_in_starts_a_worker_whose_jobs_are_of_other_users():
    dropped = (DEPLOY / "systemd" / "run-as.conf").read_text()
    words = shlex.split(re.findall(r"ExecStart=(\S.*)", dropped)[0])[1:-1]
    words[words.index("--run-as") + 1] = str(COMPOSE)  # a file that is there
    name, options = understood(words)
    assert (name, options["token_file"]) == ("worker", "/etc/tidewheel/worker.token")


def test_systemd_understands_the_drop_in(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("this machine has no systemd")
    [unit] = [path for path in UNITS if "worker" in path.name]
    for path, there in (
        (unit, tmp_path / unit.name),
        (DEPLOY / "systemd" / "run-as.conf", tmp_path / f"{unit.name}.d" / "run-as.conf"),
    ):
        there.parent.mkdir(exist_ok=True)
        there.write_text(path.read_text().replace("/usr/local/bin/tidewheel", str(PROGRAM)))
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / unit.name.replace("@", "@1")],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "worker" in line or "run-as" in line]
    assert ours == []


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load(COMPOSE.read_text())["services"]


def filled(word):
    """As compose puts variables in: what stands after `:-` where there is none."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", word)


def test_compose_starts_two_of_each_and_only_commands_that_exist(services):
    own = {name: one for name, one in services.items() if one["image"] == "tidewheel"}
    roles = [understood(map(filled, one["command"]))[0] for one in own.values()]
    counts = {role: roles.count(role) for role in roles}
    assert counts == {"server": 2, "scheduler": 2, "monitor": 1, "worker": 2}
    for one in own.values():
        assert one["restart"] == "always" and one["init"] is True


def test_h3_workers_of_compose_know_a_server_and_no_database(services):
    at_database = [services[one] for one in ("database", "server-1", "scheduler-1", "monitor")]
    for name in ("worker-1", "worker-2"):
        worker = services[name]
        assert "TIDEWHEEL_STORE" not in worker["environment"]
        assert "PASSWORD" not in str(worker) and "database" not in str(worker)
        for other in at_database:
            assert not set(worker["networks"]) & set(other["networks"])
            assert not set(worker["volumes"]) & set(other["volumes"])
        options = understood(worker["command"])[1]
        assert options["token_file"] == "/run/secrets/worker-token" and worker["user"] == "root"
        assert options["user"] not in (None, "root")
        proxy = services["proxy"]["networks"]
        assert set(worker["networks"]) < set(proxy)


def test_compose_gives_workers_more_time_than_their_grace(services):
    _, options = understood(services["worker-1"]["command"])
    minutes = float(services["worker-1"]["stop_grace_period"].removesuffix("m"))
    assert minutes * 60 > options["grace_seconds"]


def test_servers_believe_the_proxy_that_compose_starts_and_nobody_else(services):
    """S34."""
    address = services["proxy"]["networks"]["inside"]["ipv4_address"]
    _, options = understood(map(filled, services["server-1"]["command"]))
    assert options["proxies"] == (address,)
    published = [name for name, one in services.items() if "ports" in one]
    assert published == ["proxy"]


def test_no_password_is_written_anywhere():
    """S31: whoever starts it makes one."""
    for path in (one for one in DEPLOY.rglob("*") if one.is_file()):
        for line in path.read_text().splitlines():
            found = re.search(r"(?i)password\"?(?:=|:\s)\s*\"?([^\s\"]+)", line)
            assert found is None or found[1].startswith("$"), (path.name, line)


def test_compose_itself_understands_it():
    if shutil.which("docker-compose") is None:
        pytest.skip("this machine has no docker-compose")
    done = subprocess.run(
        ["docker-compose", "-f", COMPOSE, "config", "--quiet"],
        env={**os.environ, "DATABASE_PASSWORD": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
