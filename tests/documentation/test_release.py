"""What `make dist` packs is all that anybody needs: no clone, no npm, no compiler."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.support.browser import Site
from tests.support.command_line import CommandLine
from tests.support.release import ROOT, Installer, made_tools, released_wheel
from tidewheel import __version__
from tidewheel.server.static_page import BUILT

pytestmark = pytest.mark.skipif(
    not (BUILT / "index.html").exists(), reason="the web page is not built: make web"
)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return released_wheel(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    return made_tools(tmp_path_factory.mktemp("tools") / "environment")


@pytest.fixture(scope="session")
def installed(tmp_path_factory, wheel, tools):
    """The installed program and who installed it, each way once."""

    @cache
    def by(way):
        installer = Installer(tmp_path_factory.mktemp(way), tools)
        return getattr(installer, way)(wheel), installer

    return by


def user_of(program, installer, folder):
    """Somebody who types the installed program, on the same plain machine."""
    user = CommandLine(folder, program)
    user.environment["PATH"] = f"{program.parent}:{installer.environment['PATH']}"
    for name in ("git", "npm", "node", "cc", "gcc", "make"):
        assert shutil.which(name, path=user.environment["PATH"]) is None
    return user


def shipped(program):
    """As docs/install.md says where the examples lie."""
    return program.resolve().parent.parent / "share" / "tidewheel"


@pytest.mark.parametrize("way", ["pip", "uv", "pipx"])
def test_the_wheel_alone_runs_an_example_and_shows_page_and_manual(way, installed, tmp_path):
    program, installer = installed(way)
    user = user_of(program, installer, tmp_path)
    assert user("--version").out == f"tidewheel {__version__}\n"
    assert user("init", "forecast").status == 0
    forecast = user("run", "forecast/")
    assert forecast.status == 0, forecast
    assert re.search(r"forecast/run1 completed after .* 20 succeeded", forecast.out)
    assert user("init", "report", "--kind", "python").status == 0
    report = user("run", "report/report.py")  # its functions run in the wheel's own Python
    assert report.status == 0, report
    with Site(user).running() as site:
        browser = site.caller()
        page = browser.get("//")
        assert page.status == 200 and page.body == (BUILT / "index.html").read_bytes()
        for file in (BUILT / "assets").iterdir():
            sent = browser.get(f"//assets/{file.name}")
            assert (sent.status, sent.body) == (200, file.read_bytes()), file.name
        asked = re.findall(r'(?:href|src)="(/assets/[^"]+)"', page.body.decode())
        assert len(asked) > 3
        assert {browser.get(f"/{address}").status for address in asked} == {200}
        manual = browser.get("//docs/")
        assert manual.status == 200 and b"tidewheel" in manual.body
        found = browser.get("//docs/search.json")
        assert found.status == 200 and "why" in found.body.decode()
        assert browser.get("//docs/install.html").status == 200


def test_the_extras_bring_the_driver_of_postgresql_and_the_reader_of_gpus(installed):
    program, _ = installed("pip")
    script = "import psycopg, pynvml; print(psycopg.pq.__impl__)"
    command = [program.parent / "python", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("binary\n", "")


def test_the_wheel_has_the_units_of_systemd_as_they_are_in_the_repository(installed):
    program, _ = installed("uv")
    own = ROOT / "deploy" / "systemd"
    there = shipped(program) / "systemd"
    assert {path.name: path.read_bytes() for path in there.iterdir()} == {
        path.name: path.read_bytes() for path in own.iterdir()
    }


def test_a_release_holds_nothing_that_git_ignores():
    """A password or a token of whoever makes it: the files of deploy/ come from the archive."""
    rules = Path(ROOT, "Makefile").read_text().partition("\ndist:")[2].partition("\n.PHONY")[0]
    assert "tar --extract" in rules and not re.search(r"\bcp\b.*deploy", rules)
