"""The SIP example that needs no container engine runs by one command."""

from __future__ import annotations

import pytest

IMAGING = "imaging/imaging-1.0.0.yaml.j2"


@pytest.mark.req("R004-44", "R004-46")
def test_the_imaging_example_hands_values_on_and_takes_parameters(tidewheel):
    tidewheel("init", "imaging", "--kind", "stages")
    ran = tidewheel("run", IMAGING, "-p", "samples=20")
    assert ran.status == 0, ran.out + ran.err
    assert "imaging/run1 completed" in ran.out
    said = tidewheel("log", "imaging", "1/report").out
    assert said.startswith("The image has 20 pixels; 100 is 97 volts.\n")
    assert '"polarisations":["x","y"]' in said
    image = tidewheel.state / "runs" / "imaging" / "run1" / "share" / "image.txt"
    assert len(image.read_text().splitlines()) == 20


def test_the_examples_have_no_findings(tidewheel):
    tidewheel("init", "imaging", "--kind", "stages")
    checked = tidewheel("validate", IMAGING, "--strict")
    assert checked.status == 0, checked.out + checked.err
    assert "note" not in checked.out + checked.err
