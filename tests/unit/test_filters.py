"""The one grammar of filters; the page reads the same cases (web/src/ui/globs.test.ts)."""

import json
from pathlib import Path

import pytest

from tidewheel.core.queue.filters import LENGTH_MAX, read_filter
from tidewheel.errors import BadSetting

CASES = json.loads((Path(__file__).parent / "filter_cases.json").read_text())


@pytest.mark.parametrize(("text", "name", "state"), CASES["fits"])
def test_a_filter_fits_what_it_means(text, name, state):
    assert read_filter(text, CASES["states"]).fits([name], [state])


@pytest.mark.parametrize(("text", "name", "state"), CASES["not"])
def test_a_filter_fits_nothing_else(text, name, state):
    assert not read_filter(text, CASES["states"]).fits([name], [state])


@pytest.mark.parametrize("text", CASES["refused"])
def test_a_state_that_there_is_not_is_refused_with_those_that_there_are(text):
    with pytest.raises(BadSetting, match="state is 'lost'; expected waiting, ready"):
        read_filter(text, CASES["states"])


def test_any_of_several_names_may_fit_and_what_has_none_fits_no_pattern():
    assert read_filter("MODELS", ()).fits(["1/tide", "tide", "MODELS"])
    assert not read_filter("a", ()).fits([None])
    assert read_filter("", ()).fits([None])


def test_a_filter_without_end_is_refused():
    read_filter("*" * LENGTH_MAX, ())
    with pytest.raises(BadSetting, match="at most 200 characters"):
        read_filter("*a" * LENGTH_MAX, ())


def test_what_no_name_can_have_is_refused():
    with pytest.raises(BadSetting, match="printable"):
        read_filter("=a\0b", ())
