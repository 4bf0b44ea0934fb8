"""Values that a job hands on, and nodes that a task has alone, as people see them."""

import pytest

FLOW = """
[scheduling]
    [[graph]]
        R1 = a
[runtime]
    [[a]]
        script = echo '{"beams": 4}' > "$TIDEWHEEL_OUTPUTS"
"""


@pytest.mark.req("R004-44")
def test_values_of_a_job_are_on_its_page(tidewheel):
    write = """echo '{"beams": 4, "place": "north/7"}' > "$TIDEWHEEL_OUTPUTS" """
    tidewheel("submit", "--id", "a", "--command", write)
    tidewheel("submit", "--id", "b", "--command", 'echo "[1]" > "$TIDEWHEEL_OUTPUTS"')
    tidewheel("submit", "--id", "c", "--command", "true")
    tidewheel("worker", "--once")
    assert tidewheel("task", "a", "--json").json["values"] == {"beams": 4, "place": "north/7"}
    page = tidewheel("task", "a").out
    assert "returned values\n  NAME   VALUE\n  beams  4\n" in page
    [error] = tidewheel("task", "b", "--json").json["task"]["errors"]
    assert error["code"] == "bad_values"
    assert "an array instead of an object" in error["description"]
    assert tidewheel("task", "c", "--json").json["values"] is None
    assert "returned values" not in tidewheel("task", "c").out


@pytest.mark.req("R004-44")
def test_values_of_a_task_of_a_run_are_shown_with_its_submission(tidewheel):
    folder = tidewheel.folder / "flow"
    folder.mkdir()
    (folder / "flow.cylc").write_text(FLOW)
    assert tidewheel("run", str(folder)).status == 0
    [task] = tidewheel("show", "flow", "1/a", "--json").json["tasks"]
    assert task["submissions"][-1]["values"] == {"beams": 4}
    assert "returned values\n  NAME   VALUE\n  beams  4\n" in (
        tidewheel("show", "flow", "1/a").out
    )


@pytest.mark.req("R004-20", "R004-21")
def test_what_a_task_wants_of_nodes_and_buffer_is_on_its_page(tidewheel):
    tidewheel("submit", "--id", "a", "--nodes", "3", "--exclusive", "--", "true")
    tidewheel("submit", "--id", "b", "--nodes", "2", "--buffer", "2TB", "--", "true")
    assert "3 nodes, exclusive" in tidewheel("task", "a").out
    assert "2 nodes, 1.8 TiB buffer" in tidewheel("task", "b").out
    with tidewheel.started("worker", "--nodes", "2") as worker:
        worker.read_until("worker.registered")
        [why] = tidewheel("task", "a", "--json").json["why"]
        assert "It asks for 3 nodes; the largest worker offers 2; start a worker: " in why
        assert "--nodes 3" in why
    tidewheel("worker", "--nodes", "4", "--buffer", "10TB", "--once")
    assert [one["status"] for one in tidewheel("tasks", "--jobs", "--json").json["tasks"]] == [
        "succeeded",
        "succeeded",
    ]


def test_a_worker_without_nodes_is_refused(tidewheel):
    refused = tidewheel("worker", "--nodes", "0", "--once")
    assert refused.status == 2
    assert "--nodes: '0' is not valid; expected N, or FLAVOUR=N" in refused.err
