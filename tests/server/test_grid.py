"""The home of the page: runs by points in one request, for those who may see them."""

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import in_path, running_server
from tests.support.prepared_run import PreparedRun

HOURLY = """
[scheduling]
    initial cycle point = 20261116T00Z
    [[graph]]
        PT6H = get => plot
[runtime]
    [[get, plot]]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    tidewheel = CommandLine(tmp_path_factory.mktemp("grid"))
    PreparedRun(tidewheel, HOURLY, "alpha-hourly").starts().succeeds("20261116T0000Z/get")
    PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_b")
    PreparedRun(tidewheel, workflow="beta-quiet")
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        yield running


@pytest.fixture(scope="module")
def reader(server):
    return server.caller("read")


def rows(caller, query=""):
    reply = caller.get(f"/grid{query}")
    assert reply.status == 200, reply.body
    return {one["name"]: one for one in reply.json["runs"]}


def test_each_run_has_a_cell_for_each_point_with_what_its_tasks_do(reader):
    cells = rows(reader)["alpha-hourly/run1"]["cells"]
    assert [one["point"] for one in cells][:2] == ["20261116T0000Z", "20261116T0600Z"]
    assert cells[0]["counts"] == {"preparing": 1, "succeeded": 1}
    assert (cells[0]["tasks"], cells[0]["incomplete"]) == (2, 0)


def test_the_counts_of_a_cell_are_those_of_the_run_itself(reader):
    for name, row in rows(reader).items():
        shown = reader.get(f"/runs/{in_path(name)}").json
        counts = [(one["point"], one["counts"]) for one in shown["points"]]
        assert [(one["point"], one["counts"]) for one in row["cells"]] == counts, name
        assert row["earliest"] == shown["bounds"]["oldest"] or not row["cells"], name


def test_a_run_names_the_first_task_that_needs_action(reader):
    row = rows(reader)["forecast/run1"]
    assert row["cause"] == {"id": "1/model_b", "state": "failed", "more": 0}
    assert row["cells"][0]["incomplete"] == 1
    assert rows(reader)["alpha-hourly/run1"]["cause"] is None


def test_a_run_that_has_not_begun_is_a_row_without_cells(reader):
    row = rows(reader)["beta-quiet/run1"]
    assert (row["status"], row["cells"], row["since"]) == ("created", [], None)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?name=HOUR", ["alpha-hourly/run1"]),
        ("?name=*a-?*", ["alpha-hourly/run1", "beta-quiet/run1"]),
        ("?name=[ab]", []),
        ("?status=created,stalled", ["beta-quiet/run1"]),
        ("?limit=1", ["forecast/run1"]),
    ],
)
def test_rows_are_found_by_name_and_status(reader, query, names):
    assert list(rows(reader, query)) == names
    told = reader.get(f"/grid{query}").json
    assert told["counts"] == {"running": 2, "created": 1}
    assert told["left_out"] == (2 if "limit" in query else 0)


def test_somebody_who_may_see_one_team_learns_of_no_other(server):
    team = server.caller("read", names=["alpha-hourly"])
    reply = team.get("/grid?limit=1")
    assert list(rows(team)) == ["alpha-hourly/run1"]
    assert (reply.json["counts"], reply.json["left_out"]) == ({"running": 1}, 0)
    assert b"forecast" not in reply.body and b"beta" not in reply.body


def test_fewer_points_can_be_asked_for_and_too_many_are_refused(reader):
    [cell] = rows(reader, "?points=1")["alpha-hourly/run1"]["cells"]
    assert cell["point"] > "20261116T0600Z"
    assert reader.get("/grid?points=1000").status == 422
