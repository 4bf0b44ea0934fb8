"""What tests of stages begin with."""

import pytest


@pytest.fixture
def stage(tidewheel):
    """Writes a file into the folder of a stage."""

    def write(stage, name, text):
        folder = tidewheel.folder / "stages" / stage / "1.0.0"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    return write
