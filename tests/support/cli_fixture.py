"""The fixture of all tests that type commands."""

import pytest

from tests.support.command_line import CommandLine


@pytest.fixture
def tidewheel(tmp_path):
    """The program, in the hands of a newcomer."""
    return CommandLine(tmp_path)
