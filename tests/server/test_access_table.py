"""Walks the table "Who may do what to whom" of the documentation (S2, S5, S6; H4, H5, M4).

The expected answers come from that table alone: every route has a row, and every row is tried
with each scope, by a token, in a session and by a job, for what is covered and what is not.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.server.test_guards import filled
from tests.server.test_sessions import browser
from tests.support.command_line import CommandLine
from tests.support.http_server import Caller, in_path, running_server
from tests.support.prepared_run import FLOW, PreparedRun
from tests.support.workflow_folders import sip_files
from tidewheel.core.queue.access import Scope
from tidewheel.server.route_table import ROUTES
from tidewheel.server.routes import Needs

PAGE = Path(__file__).parents[2] / "docs/operations/security.md"
GUARDED = [route for route in ROUTES if isinstance(route.guard, Needs)]
# Those that take something away come last.
IN_ORDER = sorted(GUARDED, key=lambda route: (route.method == "DELETE", "stop" in route.path))
SECRET = "what-only-zebra-knows"
TEAMS = ("mine", "zebra")


class Row(NamedTuple):
    """A row of the table."""

    requests: tuple[str, ...]
    scopes: frozenset[str]
    covered: str
    job: str

    @property
    def is_for_names(self):
        return not self.covered.startswith("nothing")

    def has(self, verb):
        patterns = (re.escape(one).replace("…", ".*") for one in self.requests)
        return any(re.fullmatch(pattern, verb) for pattern in patterns)


def rows():
    section = PAGE.read_text().partition("## Who may do what to whom")[2].partition("\n## ")[0]
    found = []
    for line in section.splitlines():
        if line.startswith("| `"):
            requests, scopes, covered, job = (one.strip() for one in line.strip("|").split("|"))
            names = tuple(re.findall("`([^`]*)`", requests))
            found.append(Row(names, frozenset(scopes.split(", ")), covered, job))
    return found


TABLE = rows()


def verb_of(route):
    return f"{route.method} {route.path.removeprefix('/api/v1')}"


def row_of(route):
    return next(row for row in TABLE if row.has(verb_of(route)))


def test_every_route_has_a_row_and_every_row_a_route():
    verbs = [verb_of(route) for route in GUARDED]
    assert [verb for verb in verbs if not any(row.has(verb) for row in TABLE)] == []
    used = {row_of(route).requests for route in GUARDED}
    assert [row.requests for row in TABLE if row.requests not in used] == []


def test_the_scopes_of_every_route_are_those_of_its_row():
    wrong = [
        (verb_of(route), sorted(route.guard.scopes))
        for route in GUARDED
        if frozenset(route.guard.scopes) != row_of(route).scopes
    ]
    assert not wrong, "\n".join(map(str, wrong))


# The bodies of requests that concern names, where an empty one names nothing.
BODIES = {
    "POST /tasks": {"queue": "{team}/q"},
    "POST /tasks/get": {"ids": ["{id}"]},
    "POST /tasks/resubmit": {"ids": ["{id}"]},
    "POST /tasks/cancel": {"filter": {"queue": "{team}/q"}},
    "PATCH /tasks/{id}": {"name": "n"},
    "POST /workers": {"name": "w", "queues": ["{team}/q"]},
    "POST /runs": {"workflow": "{team}/new", "flow": "[scheduling]\n[[graph]]\nR1 = a\n"},
    "POST /workflows": {"files": {"flow.cylc": FLOW}, "name": "{team}/new", "version": "1"},
    "POST /objects": {"objects": [{"name": "{team}/raw"}]},
    "POST /runs/{run}/dry-run": {"command": {"verb": "pause"}},
    "POST /runs/{run}/definitions": {"workflow": "{team}", "text": FLOW},
    "POST /tokens": {"name": "n", "scopes": ["admin"]},
    "POST /sbis": {
        "id": "SBI-20261117-{team}-2",
        "version": "2.0",
        "scheduling_block": {"id": "SB-1"},
        "processing_blocks": [
            {
                "id": "PB-20261117-{team}-2",
                "type": "offline",
                "workflow": {"id": "vis", "parameters": {"site": "x"}},
            }
        ],
    },
}
_IDS = {"ids": ["1/prep"]}
_COMMANDS = dict.fromkeys(("trigger", "set", "remove", "hold", "release", "kill", "poll"), _IDS)
_COMMANDS["message"] = {"id": "1/prep", "texts": ["half"]}
_COMMANDS["ext-trigger"] = {"message": "go"}
_COMMANDS["broadcast"] = {"settings": ["script=true"]}
BODIES |= {f"POST /runs/{{run}}/{verb}": body for verb, body in _COMMANDS.items()}
_HELD = {"worker": "worker-99", "attempt": 1}
_REPORTS = dict.fromkeys(("started", "heartbeat", "yield", "token"), _HELD)
_REPORTS |= {"claim": {"worker": "worker-99"}, "finish": _HELD | {"ending": "succeeded"}}
_REPORTS |= {
    "outputs": _HELD | {"messages": [{"number": 1, "text": "x"}]},
    "usage": _HELD | {"samples": [{}]},
}
_REPORTS |= {"adopt": _HELD | {"owner": "worker-98"}, "messages": {"text": "x"}}
BODIES |= {f"POST /tasks/{{id}}/{verb}": body for verb, body in _REPORTS.items()}
for _what, _body in {"memory_usage": "bytes", "cpu_utilization": "percent"}.items():
    for _method in ("POST", "PATCH"):
        BODIES[f"{_method} /tasks/{{id}}/execution_info/report_{_what}"] = {_body: 1}
BODIES["POST /queues/{queue}/claim"] = {"worker": "worker-99"}
EDGES = {"targets": ["{id}"], "values": ["{other}"]}
QUERIES = {
    "GET /events": "?run={run}&since=x",
    "GET /events/snapshot": "?run={run}",
    "GET /orphans": "?host=h&boot_id=b",
    "GET /workflows/{name}/{version}/diff": "?against=1",
    "PUT /tasks/{id}/logs/{stream}": "?worker=worker-99&attempt=1&offset=0",
    "GET /runs/{run}/workflow-state": "?id=*/*",
}


def request_of(route, team):
    """The method, path and body of a request to this route that concerns things of a team."""
    verb = verb_of(route)
    body = BODIES.get(verb, {} if route.changes else None)
    if "continuation" in verb:
        body = {"values": ["{other}"]} if "{id}" in verb else [EDGES]
    if route.raw and verb.startswith("PUT"):
        body = b"x"
    names = {
        "team": team,
        "id": f"{team}-task",
        "other": f"{team}-other",
        "run": f"{team}/run1",
        "queue": f"{team}/q",
        "sbi": f"SBI-20261117-{team}-1",
        "block": f"PB-20261117-{team}-1",
        "name": f"{team}/raw" if "objects" in verb else f"{team}/flow",
    }
    if "/workers/{id}" in verb:
        names["id"] = "worker-99"
    path = route.path
    for name in route.path_names:
        path = path.replace(f"{{{name}}}", in_path(names.get(name, "1")))
    query = QUERIES.get(verb, "?wait_s=0" if is_command(route) else "")
    headers = {"Content_Type": "text/plain"} if isinstance(body, bytes) else {}
    return route.method, f"/{path}{filled(query, names)}", filled(body, names), headers


def is_command(route):
    """Whether a scheduler has to obey, for which there is none here to wait for."""
    return route.query is not None and "wait_s" in route.query.__struct_fields__


@pytest.fixture(scope="module")
def tidewheel(tmp_path_factory):
    return CommandLine(tmp_path_factory.mktemp("teams"))


@pytest.fixture(scope="module")
def runs(tidewheel):
    flow = FLOW + f"\n# {SECRET}\n"
    return {
        team: PreparedRun(tidewheel, flow if team == "zebra" else FLOW, team, (team,)).starts()
        for team in TEAMS
    }


@pytest.fixture(scope="module")
def server(tidewheel, runs):
    del runs
    with running_server(tidewheel.store, home=tidewheel.state, failures_max=100_000) as running:
        admin = running.caller("admin")
        done = [admin.post("/workflows", {"files": sip_files("vis-1.0.0.yaml")})]
        for team in TEAMS:
            for name in ("task", "other"):
                task = {"id": f"{team}-{name}", "queue": f"{team}/q", "armed": False}
                done.append(admin.post("/tasks", task | {"spec": known_by(team)}))
            flow = {"files": {"flow.cylc": FLOW}, "name": f"{team}/flow", "version": "1"}
            done.append(admin.post("/workflows", flow))
            facts = {"known": known_by(team)}
            posted = {"objects": [{"name": f"{team}/raw", "facts": facts}]}
            done.append(admin.post("/objects", posted))
            sbi = filled(BODIES["POST /sbis"], {"team": team})
            text = str(sbi).replace("-2'", "-1'").replace("'", '"').encode()
            done.append(admin.post("/sbis", text))
        assert [one.body for one in done if one.status not in (200, 201)] == []
        yield running


def known_by(team):
    return SECRET if team == "zebra" else "nothing much"


NAMES = ("mine", "PB-20261117-mine-*", "SBI-20261117-mine-*", "vis")


def is_refused(reply):
    """Whether a caller was refused for its scope or for names."""
    if reply.status == 401:
        return True
    said = reply.json.get("message", "") if reply.status == 403 else ""
    return "needs a token with scope" in said or "this token is" in said


def includes(scope):
    return set(Scope) if scope is Scope.ADMIN else {scope, Scope.READ}


def asking(server, kind, scope, names):
    caller = server.caller(scope, names=() if scope is Scope.ADMIN else names)
    if kind == "bearer":
        return lambda *request, headers: caller.ask(*request, **headers)
    person = browser(server, caller)
    return lambda *request, headers: person.ask(*request, **headers, X_CSRF_Token=person.csrf)


CASES = [(kind, scope) for kind in ("bearer", "session") for scope in Scope]


@pytest.mark.parametrize(("kind", "scope"), CASES, ids=str)
def test_a_route_answers_as_its_row_says(server, kind, scope):
    """Each route, of what is covered: let in with the scope of the row, else refused."""
    ask, wrong = asking(server, kind, scope, NAMES), []
    for route in IN_ORDER:
        if verb_of(route) == "POST /logout":
            continue
        *request, headers = request_of(route, "mine")
        reply = ask(*request, headers=headers)
        may = not includes(scope).isdisjoint(row_of(route).scopes)
        if route.guard.narrow:  # a new priority is a submitter's
            may = not includes(scope).isdisjoint({Scope.SUBMIT})
        if may == is_refused(reply) or reply.status >= 500:
            wrong.append((verb_of(route), reply.status, reply.body[:200]))
    assert not wrong, "\n".join(map(str, wrong))


OTHERS = [(kind, scope) for kind, scope in CASES if scope is not Scope.ADMIN]


@pytest.mark.parametrize(("kind", "scope"), OTHERS, ids=str)
def test_nothing_of_another_team_is_reached_by_any_route(server, kind, scope):
    """H5, M4: refused where a name is asked for, and nothing of it is shown where none is."""
    ask, wrong = asking(server, kind, scope, NAMES), []
    before = state_of(server, "zebra")
    for route in IN_ORDER:
        if verb_of(route) == "POST /logout":
            continue
        *request, headers = request_of(route, "zebra")
        reply = ask(*request, headers=headers)
        told = SECRET.encode() in reply.body
        if row_of(route).is_for_names:
            is_reached = reply.status not in (403, 404)
        else:
            is_reached = b"zebra" in reply.body
        if told or is_reached or reply.status >= 500:
            wrong.append((verb_of(route), reply.status, reply.body[:200]))
    assert not wrong, "\n".join(map(str, wrong))
    assert state_of(server, "zebra") == before


ITS_OWN = ("x-request-id", "date")  # of each reply
GHOST = "ghost"  # a team that there is not, with a name as long as zebra's


@pytest.mark.parametrize(("kind", "scope"), OTHERS, ids=str)
def test_nobody_can_tell_by_any_route_whether_a_thing_of_another_team_is_there(
    server, kind, scope
):
    """The answer for what is another's is the answer for what is not there, to the letter."""
    ask, wrong = asking(server, kind, scope, NAMES), []
    for route in IN_ORDER:
        if not row_of(route).is_for_names:
            continue
        told = []
        for team in ("zebra", GHOST):
            *request, headers = request_of(route, team)
            told.append(without_names(ask(*request, headers=headers), team))
        if told[0] != told[1]:
            wrong.append((verb_of(route), *told))
    assert not wrong, "\n".join(map(str, wrong))


def without_names(reply, team):
    """A reply as it would be for any team: what it says, and every header of it."""
    said = reply.body.decode().replace(team, "TEAM")
    said = said.replace(reply.headers["x-request-id"], "ID")
    headers = {name: reply.headers[name] for name in reply.headers if name not in ITS_OWN}
    return reply.status, said, headers


def test_a_job_cannot_tell_either_whether_a_thing_of_another_team_is_there(job):
    wrong = []
    for route in GUARDED:
        if row_of(route).is_for_names:
            told = []
            for team in ("zebra", GHOST):
                method, path, body, headers = request_of(route, team)
                told.append(without_names(job.ask(method, path, body, **headers), team))
            if told[0] != told[1]:
                wrong.append((verb_of(route), *told))
    assert not wrong, "\n".join(map(str, wrong))


def state_of(server, team):
    """All that can be looked at of a team, as it is now."""
    admin = server.caller("admin")
    paths = [
        f"/tasks/{team}-task",
        f"/tasks/{team}-other/graph",
        f"/queues/{in_path(f'{team}/q')}",
        f"/runs/{in_path(f'{team}/run1')}/facts",
        f"/runs/{in_path(f'{team}/run1')}/history",
        f"/workflows/{in_path(f'{team}/flow')}/1",
        f"/processing-blocks/PB-20261117-{team}-1",
    ]
    found = [admin.get(path) for path in paths]
    assert [one.status for one in found] == [200] * len(paths), [one.body for one in found]
    objects = [one for one in admin.get("/objects").json["objects"] if team in one["name"]]
    return [one.json for one in found], objects


@pytest.fixture(scope="module")
def job(server, runs):
    """A job of my team's run, with the token of its attempt."""
    worker = server.caller("worker")
    path = f"/tasks/{in_path(runs['mine'].name + '/1/prep/1')}"
    owner = worker.post("/workers", {"name": "w", "queues": ["run:*"]}).json["id"]
    assert worker.post(f"{path}/claim", {"worker": owner}).status == 200
    given = worker.post(f"{path}/token", {"worker": owner, "attempt": 1})
    return Caller(server.address, given.json["token"])


@pytest.mark.parametrize("team", TEAMS)
def test_a_job_reaches_its_own_run_alone(server, job, runs, team):
    """H4: with its own token a job is let in where the table says so, and for its own."""
    before, wrong = state_of(server, "zebra"), []
    own_task = in_path(f"{runs['mine'].name}/1/prep/1")
    for route in GUARDED:  # what ends a run is not obeyed: no scheduler drives it
        method, path, body, headers = request_of(route, team)
        if team == "mine":
            path = path.replace("mine-task", own_task)
        reply, its = job.ask(method, path, body, **headers), row_of(route).job
        is_own = team == "mine" or not row_of(route).is_for_names
        is_let_in = reply.status not in (401, 403, 404) or (
            is_own and reply.status == 404 and bool(its)
        )
        if is_let_in != (bool(its) and is_own) or SECRET.encode() in reply.body:
            wrong.append((verb_of(route), reply.status, reply.body[:200]))
    assert not wrong, "\n".join(map(str, wrong))
    assert state_of(server, "zebra") == before
