"""Shells complete names of runs, tasks, queues and workflows."""

import pytest

SHELLS = ("bash", "zsh", "fish")


def completed(tidewheel, line, shell="bash"):
    """Returns what a shell proposes for the last word of a line."""
    words = line.split(" ")
    place = words[-1] if shell == "fish" else str(len(words) - 1)
    asked = tidewheel(
        _TIDEWHEEL_COMPLETE=f"{shell}_complete", COMP_WORDS=line, COMP_CWORD=place
    )
    assert (asked.status, asked.err) == (0, "")
    found = asked.out.replace("\n_\n", "\n").split()
    return [one.removeprefix("plain,") for one in found if one != "plain"]


@pytest.fixture
def forecast(tidewheel):
    tidewheel("init", "forecast", "--kind", "python")
    assert tidewheel("run", "forecast/forecast.py").status == 0
    return tidewheel


@pytest.mark.parametrize("shell", SHELLS)
def test_names_of_runs_and_ids_of_their_tasks(forecast, shell):
    assert completed(forecast, "tidewheel show fore", shell) == ["forecast/run1"]
    assert completed(forecast, "tidewheel why forecast/run1 2/", shell) == [
        "2/average",
        "2/fetch",
        "2/report",
    ]


def test_every_verb_and_view_of_a_run_completes_its_name(forecast):
    for command in (
        "tree",
        "log",
        "tui",
        "trigger",
        "set",
        "hold",
        "stop",
        "reload",
        "message",
    ):
        assert completed(forecast, f"tidewheel {command} f") == ["forecast/run1"], command


def test_tasks_of_the_queue_are_completed_and_jobs_of_runs_are_not(forecast):
    forecast("submit", "--id", "first", "--queue", "mail", "--", "true")
    assert completed(forecast, "tidewheel task f") == ["first"]
    assert completed(forecast, "tidewheel cancel f") == ["first"]
    assert completed(forecast, "tidewheel worker --queue m") == ["mail"]
    assert completed(forecast, "tidewheel queues m") == ["mail"]


def test_definitions_are_completed_as_files_and_as_registered_names(tidewheel):
    tidewheel("init", "sky", "--kind", "stages")
    tidewheel("register", "sky/")
    assert completed(tidewheel, "tidewheel graph s") == ["file,s", "sky"]
    assert completed(tidewheel, "tidewheel workflows show s") == ["sky"]


def test_without_a_shell_the_choices_are_told_in_one_line(tidewheel):
    refused = tidewheel("completion")
    assert refused.status == 2
    assert "write: tidewheel completion {bash|zsh|fish}\n" in refused.err


def test_where_there_is_no_store_nothing_is_proposed_and_none_is_made(tidewheel):
    assert completed(tidewheel, "tidewheel show f") == []
    assert completed(tidewheel, "tidewheel --store sqlite:///no/where.db show f") == []
    assert list(tidewheel.folder.iterdir()) == []
