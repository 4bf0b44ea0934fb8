"""How people read tasks: by point and name, in a run of stages by the stage alone."""

import pytest

from tidewheel.core.graph import definition as graph
from tidewheel.core.graph.shown_names import (
    end_text,
    joined_output,
    output_text,
    stage_name,
    stage_text,
)

OBJECT = graph.NodeDef(
    name="object@vis", run_mode=graph.RunMode.SKIP, meta=(("title", "buffer object vis"),)
)
OFF = graph.NodeDef(
    name="image",
    run_mode=graph.RunMode.SKIP,
    skip=graph.Skip(remark="switched off"),
    meta=(("title", "processing 1.0.0"),),
)


def test_a_stage_is_called_by_its_name_and_what_it_waits_for_by_its_title():
    assert stage_text(graph.NodeDef(name="image")) == "image"
    assert stage_text(graph.NodeDef(name="image<item>")) == "image"
    assert stage_text(OBJECT) == "buffer object vis"


def test_a_stage_that_is_switched_off_stays_a_stage():
    assert stage_text(OFF) == "image"
    assert output_text(OFF, "image", "succeeded") == "the success of image"


def test_elements_keep_their_names():
    assert stage_name("image_item3") == "image_item3"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("succeeded", "the success of a"),
        ("started", "the start of a"),
        ("failed", "the failure of a"),
        ("submit-failed", "the failure of a"),
        ("finished", "the end of a"),
        ("expired", "the expiry of a"),
        ("half", "the output half of a"),
    ],
)
def test_an_output_is_told_in_words(output, words):
    assert output_text(None, "a", output) == words


def test_what_only_waits_has_no_output_that_anybody_knows():
    assert output_text(OBJECT, "buffer object vis", "succeeded") == "buffer object vis"


def test_several_ends_of_one_stage_are_told_as_one():
    assert joined_output({"succeeded", "failed", "submit-failed"}) == "finished"
    assert joined_output({"failed", "submit-failed"}) == "failed"
    assert joined_output({"started"}) == "started"


def test_a_stage_whose_job_never_came_could_not_be_begun():
    assert end_text("submit-failed") == "could not be started"
    assert end_text("failed") == "failed"
