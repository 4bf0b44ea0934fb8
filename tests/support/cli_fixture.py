"""The fixture of all tests that type commands."""

import json

import pytest

from tests.support.command_line import CommandLine

PLACES = ("sqlite", "postgres", "server")
# For what is promised of each store, and from another machine: same words, same answers.
BOTH_STORES = pytest.mark.parametrize("tidewheel", PLACES[:2], indirect=True)
EVERYWHERE = pytest.mark.parametrize("tidewheel", PLACES, indirect=True)
SOON = {"TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS": "0.1"}


@pytest.fixture
def tidewheel(request, tmp_path):
    """The program, in the hands of a newcomer; with EVERYWHERE also where the store is
    PostgreSQL, and where another machine has it and everything else."""
    place = getattr(request, "param", "sqlite")
    if place == "sqlite":
        yield CommandLine(tmp_path)
        return
    url = request.getfixturevalue("postgres_url")
    if place == "postgres":
        here = CommandLine(tmp_path)
        here.environment["TIDEWHEEL_STORE"] = url
        yield here
        return
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    machine = CommandLine(there)
    machine.environment["TIDEWHEEL_STORE"] = url
    with machine.started("up", "--port", "0", "--json", **SOON) as up:
        said = json.loads(up.read_until('"url"'))
        up.read_on()
        caller = CommandLine(here)
        caller.environment |= {
            "TIDEWHEEL_SERVER": said["url"],
            "TIDEWHEEL_TOKEN": (machine.state / "token").read_text().strip(),
        }
        yield caller
