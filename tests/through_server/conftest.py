"""Two machines: one with the store and its server, and another from which somebody asks it."""

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import running_server


@pytest.fixture
def there(tmp_path):
    """The machine with the store; its server runs in this process."""
    (tmp_path / "there").mkdir()
    machine = CommandLine(tmp_path / "there")
    machine.state.mkdir(parents=True, mode=0o700)
    return machine


@pytest.fixture
def server(there):
    with running_server(there.store, home=there.state) as running:
        yield running


@pytest.fixture
def here(tmp_path, server):
    """Somebody at another machine, with a token."""
    (tmp_path / "here").mkdir()
    machine = CommandLine(tmp_path / "here")
    machine.environment |= {
        "TIDEWHEEL_SERVER": f"http://{server.address}",
        "TIDEWHEEL_TOKEN": server.caller("submit", "operate").token,
    }
    return machine
