"""The contract with programs: what REST and `--json` say is fixed in files (issue 16).

`tests/server/golden/openapi.json` is the OpenAPI document; `things.json` has one of each thing
as REST and the command line say it. Times, processes and secrets are replaced by words, all
else is compared exactly, the order of keys included. After a wanted change of the contract:

    GOLDEN=rewrite .venv/bin/python -m pytest -q -n 0 tests/server/test_contract.py
"""

import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import running_server
from tests.support.prepared_run import PreparedRun
from tidewheel import Client
from tidewheel.server import openapi
from tidewheel.server.route_table import ROUTES

GOLDEN = Path(__file__).with_name("golden")
# A moment, a duration from now, the number of a problem in the server's log, the audit's end.
TIME = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|(?<=due in )[\dhms ]+|^[0-9a-f]{16}$|(?<=\d:)[0-9a-f]{64}"
)
# What is another in each process, by its key.
PASSING = {
    *("host", "boot_id", "pid", "started", "owner", "worker", "claimed_by", "correlation"),
    *("oldest_ready_seconds", "queue_seconds", "run_seconds", "folder", "digest", "sha256"),
    *("definition", "changed_at", "scheduler", "cursor", "mean", "p50", "p90", "p99", "max"),
}


def compare(name, seen):
    """With the file of this name, or write that."""
    lines = [f"{json.dumps(key)}: {json.dumps(seen[key], ensure_ascii=False)}" for key in seen]
    path, text = GOLDEN / name, "{\n" + ",\n".join(lines) + "\n}\n"
    if os.environ.get("GOLDEN") == "rewrite":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), f"the contract changed; {name} says how it was"


# No time is a number: of the things here none is so large, and only sizes may be.
INSTANTS = (1.0e9, 9.0e9)


def fixed(value, key=""):
    """Without what is another each time."""
    match value:
        case int() | float() if INSTANTS[0] <= value < INSTANTS[1]:
            assert "bytes" in key, f"{key} is {value}: a time as a number?"
        case dict():
            return {name: fixed(one, name) for name, one in value.items()}
        case list():
            return [fixed(one, key) for one in value]
        case str() if TIME.search(value):
            return TIME.sub("TIME", value)
        case None | bool():
            return value
        case _ if key in PASSING:
            return f"A {key.upper()}"
    return value


@pytest.fixture(scope="module")
def command_line(tmp_path_factory):
    return CommandLine(tmp_path_factory.mktemp("contract"))


@pytest.fixture(scope="module")
def server(command_line):
    """A server over the store that the command line has, with a run in it."""
    run = PreparedRun(command_line).starts().succeeds("1/prep").fails("1/model_a")
    run.starts_job("1/model_b")
    with running_server(command_line.store, failures_max=1_000) as running:
        yield running


@pytest.fixture(scope="module")
def admin(server):
    caller = server.caller("admin")
    fill(caller)
    return caller


def fill(caller):
    """Tasks in several states, with everything that can belong to one."""
    whole = {
        "id": "whole",
        "queue": "night",
        "name": "a name",
        "spec_text": ' {"b": 1,  "a": [1.50, null]}',
        "handler": "work",
        "priority": 7,
        "delay": "1h",
        "retries": 3,
        "retry_delays": [1, "2m"],
        "max_lapses": 2,
        "timeout": "1h",
        "estimated_runtime": 5,
        "max_termination": 3,
        "cpu": 0.5,
        "memory": "2GiB",
        "gpu": 1,
        "labels": ["b", "a"],
        "nodes": 2,
        "exclusive": True,
        "buffer": "1MiB",
        "unique_key": "u",
        "limit_key": "l",
        "tag": "t",
    }
    tasks = [
        {"id": "parent", "queue": "day", "name": "first", "command": "false", "backoff": True},
        {"id": "child", "queue": "day", "needs": ["parent", ["parent", "half"]]},
        {"id": "null", "queue": "night", "spec": None},
        whole,
    ]
    assert caller.post("/tasks", tasks).status < 300
    limits = [{"key": "", "concurrency_max": 4}, {"key": "*", "rate_max": 2, "rate_seconds": 3}]
    assert caller.patch("/queues/day", {"limits": limits, "aging": True}).status == 200
    about = {"name": "w", "queues": ["day"], "slots": 2, "host": "h", "capacity": {"cpu": 4}}
    worker = caller.post("/workers", about | {"handlers": ["work", "else"]}).json["id"]
    assert caller.post("/queues/day/claim", {"worker": worker, "n": 1}).json["tasks"]
    report = {
        "id": "parent",
        "attempt": 1,
        "started": True,
        "messages": [
            {"number": 1, "text": "said", "output": None},
            {"number": 2, "text": "at half", "output": "half"},
        ],
        "samples": [{"memory_bytes": 5, "cpu_percent": 50.0}],
        "end": {
            "ending": "failed",
            "exit_status": 3,
            "error": {"code": "oops", "description": "it broke", "args": {"why": 1}},
            "metrics_text": '{"m": 1}',
        },
    }
    told = caller.post("/reports", {"worker": worker, "reports": [report]})
    assert told.json["answers"][0]["refused"] is None, told.json
    assert caller.post("/tokens", {"name": "ci", "scopes": ["read"], "queues": ["ci-*"]}).json


RUN = "/runs/forecast%2Frun1"
ASKED = (
    *("/tasks", "/tasks/whole", "/tasks/null", "/tasks/parent", "/tasks/parent/history"),
    *("/tasks/parent/attempts", "/tasks/parent/outputs", "/tasks/parent/usage"),
    *("/tasks/parent/graph", "/tasks/child/inputs", "/tasks/child/why", "/queues"),
    *("/queues/day", "/queues/other"),
    *("/queues/night/peek", "/workers", "/tokens", "/statistics?by=queue", "/ended-attempts"),
    *("/audit", "/verify", "/ready-queues", "/session"),
    *("/tasks/parent?vocabulary=scylla", "/tasks/parent?vocabulary=banyan"),
    *("/tasks?fields=id,tag&limit=1", "/tasks/nothing"),
    *("/runs", RUN, f"{RUN}/tree", f"{RUN}/tasks", f"{RUN}/summary", f"{RUN}/submissions"),
    *(f"{RUN}/why?task=1/post", f"{RUN}/history", f"{RUN}/graph", f"{RUN}/broadcasts"),
    *("/workflows", "/sbis", "/processing-blocks", "/objects"),
)
TYPED = (
    *("tasks", "task whole", "task null", "task parent", "task child", "queues", "workers"),
    *("token list", "token audit", "verify", "runs", "show", "show 1/model_a", "tree"),
    *("why 1/post", "task nothing"),
)


def brief(responses):
    return {status: one if status < "4" else "" for status, one in responses.items()}


def test_the_openapi_document_is_as_it_was():
    """A line for each path and for each type; of the refusals only the statuses are kept."""
    document = json.loads(msgspec.json.encode(openapi.document(ROUTES)))
    lines = {
        f"{method.upper()} {path}": operation | {"responses": brief(operation["responses"])}
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    compare("openapi.json", lines | document["components"]["schemas"])


MOMENTS = re.compile(r"(^|_)(at|since|until|due|now)$")


def test_no_field_that_is_a_time_is_a_number():
    """Times are ISO 8601 in whatever REST and `--json` answer."""
    types = json.loads(msgspec.json.encode(openapi.document(ROUTES)))["components"]["schemas"]
    fields = {
        f"{name}.{key}": json.dumps(about)
        for name, schema in types.items()
        for key, about in schema.get("properties", {}).items()
        if MOMENTS.search(key)
    }
    assert fields
    numbers = {name for name, about in fields.items() if re.search('"(number|integer)"', about)}
    # What a program sends and gets back as it was; older servers and clients know a number.
    assert numbers == {"OptionsIn.now"}


def test_one_of_each_thing_is_said_as_it_was(admin, command_line):
    answers = {f"GET {path}": fixed(admin.get(path).json) for path in ASKED}
    for typed in TYPED:
        done = command_line("--json", *typed.split())
        answers[f"tidewheel {typed}"] = fixed(json.loads(done.out or done.err))
    compare("things.json", answers)


# What only REST says: letter by letter, in case the JSON alone does not.
LETTER_BY_LETTER = {"spec_text", "metrics_text"}


def bare(thing):
    return {name: value for name, value in thing.items() if name not in LETTER_BY_LETTER}


def test_the_command_line_says_what_the_server_says(admin, command_line):
    for task_id in ("whole", "null", "parent", "child"):
        typed = command_line("--json", "task", task_id).json
        path = f"/tasks/{task_id}"
        assert typed["task"] == bare(admin.get(path).json)
        asked = admin.get(f"{path}/attempts").json["attempts"]
        assert typed["attempts"] == [bare(one) for one in asked]
        assert typed["history"] == admin.get(f"{path}/history").json["history"]
        assert typed["outputs"] == admin.get(f"{path}/outputs").json["outputs"]
        assert fixed(typed["why"]) == fixed(admin.get(f"{path}/why").json["reasons"])
        edges = admin.get(f"{path}/graph").json["edges"]
        said = [*typed["needs"], *typed["needed_by"]]
        ends = ("parent_status", "child_status")
        assert [{k: v for k, v in one.items() if k not in ends} for one in said] == edges
    for thing in ("queues", "workers", "tasks"):
        jobs = ["--jobs"] if thing == "tasks" else []
        typed = command_line("--json", thing, *jobs).json[thing]
        passing = ("oldest_ready_seconds", "spec")  # lists of the server leave out specs
        asked = [bare(one) for one in admin.get(f"/{thing}").json[thing]]
        for one in (*typed, *asked):
            for name in passing:
                one.pop(name, None)
        assert typed == asked
    tokens = admin.get("/tokens").json["tokens"]
    typed = command_line("--json", "token", "list").json["tokens"]
    assert [one | {"used_at": 0} for one in typed] == [one | {"used_at": 0} for one in tokens]
    assert command_line("--json", "runs").json == admin.get("/runs").json
    assert command_line("--json", "tree").json == admin.get(f"{RUN}/tree").json


def told(thing):
    """Its fields; times to the millisecond, since texts have no more than microseconds."""
    return re.sub(r"\d{10}\.\d+", lambda found: f"{float(found[0]):.3f}", repr(thing))


def test_a_client_has_the_same_from_a_server_as_from_its_store(admin, command_line):
    with (
        Client(command_line.store) as near,
        Client(f"http://{admin.address}", token=admin.token) as far,
    ):
        for task_id in ("whole", "null", "parent", "child"):
            for ask in ("get", "attempts", "history", "outputs", "usage", "edges"):
                seen = told(getattr(near, ask)(task_id))
                assert seen == told(getattr(far, ask)(task_id)), ask
        assert told(near.workers()) == told(far.workers())
        assert [one.settings for one in near.queues()] == [one.settings for one in far.queues()]
        assert told(list(near.list())) == told(list(far.list()))
