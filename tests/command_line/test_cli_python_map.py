"""`process.map(find())` of a workflow in Python, as people who run it see it (issue 19)."""

import json
import signal

import pytest

from tests.support.workflow_folders import put

SHOP = """\
import os
from pathlib import Path

from tidewheel import Workflow

flow = Workflow("shop")


@flow.task
def find() -> list[str]:
    return {files}


@flow.task{settings}
def process(file: Path, scale: int, names: list[str]) -> dict[str, object]:
    assert isinstance(file, Path) and isinstance(scale, int), (file, scale)
    if file.name == "bad" and os.environ["CYLC_TASK_TRY_NUMBER"] == "1":
        raise ValueError("no such file")
    print("reading", file, "of", len(names))
    return {{"size": len(file.name) * scale}}


@flow.task
def plot(size: int) -> None:
    print("plotting", size)


@flow.task
def summary(results: list[dict[str, int]], plots: list[None]) -> int:
    print("sizes", [one["size"] for one in results], plots)


files = find()
results = process.map(files, 10, names=files)
summary(results, plot.map(results.value("size")))
"""


def shop(files, settings=""):
    return SHOP.format(files=json.dumps(files), settings=settings)


def printed(tidewheel, task):
    return tidewheel("log", "shop", task).out


@pytest.mark.parametrize("files", [[], ["5"], ["a.nc", "b c.nc", "$(touch hacked)"]])
def test_a_function_runs_for_each_element_and_the_join_gets_what_they_returned(
    tidewheel, files
):
    put(tidewheel.folder, {"shop.py": shop(files)})
    ran = tidewheel("run", "shop.py")
    assert ran.status == 0, ran.out + ran.err
    for number, name in enumerate(files):
        size = len(name) * 10
        said = printed(tidewheel, f"1/process_file{number}")
        assert said == f"reading {name} of {len(files)}\n"
        assert printed(tidewheel, f"1/plot_file{number}") == f"plotting {size}\n"
    sizes = [len(one) * 10 for one in files]
    assert printed(tidewheel, "1/summary") == f"sizes {sizes} {[None] * len(files)}\n"


def test_an_element_that_fails_is_tried_again_alone(tidewheel):
    put(tidewheel.folder, {"shop.py": shop(["good", "bad"], "(retries=1)")})
    assert tidewheel("run", "shop.py").status == 0
    [good] = [one for one in tidewheel("tree", "shop").out.splitlines() if "file0" in one][:1]
    assert "succeeded" in good
    assert printed(tidewheel, "1/process_file1") == "reading bad of 2\n"
    assert printed(tidewheel, "1/summary") == "sizes [40, 30] [None, None]\n"


def test_an_element_that_fails_for_good_keeps_the_join_and_its_own_alone(tidewheel):
    put(tidewheel.folder, {"shop.py": shop(["good", "bad"])})
    with tidewheel.started("run", "shop.py") as run:
        run.read_until("stalled")
        assert "ValueError: no such file" in tidewheel("log", "shop", "1/process_file1").out
        why = tidewheel("why", "shop", "1/summary").out
        assert "1 more of the 2 elements of process<file>" in why
        assert printed(tidewheel, "1/plot_file0") == "plotting 40\n"
        assert "Did you mean process<file>?" in tidewheel("trigger", "shop", "1/process").err
        tidewheel("set", "shop", "1/process_file1", "--value", "size=7", "--out", "succeeded")
        run.read_until("completed")
    assert printed(tidewheel, "1/summary") == "sizes [40, 7] [None, None]\n"


def test_a_value_that_an_element_lacks_is_named(tidewheel):
    put(tidewheel.folder, {"shop.py": shop(["bad"])})
    with tidewheel.started("run", "shop.py") as run:
        run.read_until("stalled")
        tidewheel("set", "shop", "1/process_file0", "--out", "succeeded")
        run.read_until("1/plot_file0 not started")
        said = tidewheel("why", "shop", "1/plot_file0").out
        assert "1/process_file0 returned no values" in said
        tidewheel("stop", "shop", "--now")


def test_a_source_that_returns_no_list_fails_with_the_reason(tidewheel):
    text = shop([]).replace("def find() -> list[str]:\n    return []", "def find(): return 3")
    put(tidewheel.folder, {"shop.py": text})
    with tidewheel.started("run", "shop.py") as run:
        run.read_until("stalled")
        said = tidewheel("why", "shop", "1/find").out
        assert "1/find returned no list, which process<file>, plot<file> needs" in said
        tidewheel("set", "shop", "1/find", "--value", 'return=["x"]', "--out", "succeeded")
        run.read_until("completed")
    assert printed(tidewheel, "1/summary") == "sizes [10] [None]\n"


def test_a_run_that_is_killed_again_and_again_runs_each_element_once(tidewheel):
    text = shop([str(number) for number in range(30)]).replace(
        'print("reading"',
        'open(os.environ["CYLC_WORKFLOW_SHARE_DIR"] + "/ran", "a")'
        '.write(f"{file}\\n"); print("reading"',
    )
    put(tidewheel.folder, {"shop.py": text + 'flow.limit("default", 4)\n'})
    first = ["run", "shop.py"]
    for heard in ("1/find succeeded", "process_file", "plot_file"):
        with tidewheel.started(*first) as run:
            run.read_until(heard)
            run.send(signal.SIGKILL)
            run.wait()
        first = ["run", "shop/run1"]
    with tidewheel.started(*first) as run:
        run.read_until("completed")
    sizes = [len(str(number)) * 10 for number in range(30)]
    assert printed(tidewheel, "1/summary") == f"sizes {sizes} {[None] * 30}\n"
    ran = tidewheel.home / ".local/state/tidewheel/runs/shop/run1/share/ran"
    assert sorted(map(int, ran.read_text().split())) == list(range(30))


def test_a_list_that_is_too_long_fails_and_says_where_its_bound_is(tidewheel):
    text = shop(["a", "b"]).replace("names=files)", "names=files, max=1)")
    put(tidewheel.folder, {"shop.py": text})
    assert tidewheel("run", "shop.py", "--stall-timeout", "0").status == 1
    said = tidewheel("why", "shop", "1/find").out
    assert "1/find returned 2 elements for " in said
    assert "in Python: map(…, max=…)" in said


def test_a_join_gets_more_than_a_variable_can_hold(tidewheel):
    text = shop(["a", "ü"]).replace('"size": len', '"text": "x" * 60_000, "size": len')
    counted = 'print(sum(len(one["text"]) for one in results), "sizes"'
    text = text.replace('print("sizes"', counted).replace("dict[str, int]]", "dict]")
    put(tidewheel.folder, {"shop.py": text})
    ran = tidewheel("run", "shop.py")
    assert ran.status == 0, ran.out + ran.err
    assert printed(tidewheel, "1/summary") == "120000 sizes [10, 10] [None, None]\n"
    assert printed(tidewheel, "1/process_file1") == "reading ü of 2\n"


def test_a_rehearsal_plays_elements_by_their_names_and_by_that_of_their_function(tidewheel):
    put(tidewheel.folder, {"shop.py": shop([])})
    said = tidewheel("rehearse", "shop.py").out
    assert "assumed: find returns a list of 2 elements" in said
    for name, failures in (("process_file1", 1), ("process", 2)):
        played = tidewheel("rehearse", "shop.py", "--fail", f"1/{name}", "--length", "find=1m")
        assert f"{failures} failed" in played.out


SCRIPTS = """\
from tidewheel import Workflow

flow = Workflow("scripts", initial=1, final=2)
find = flow.task("find", script='''
    echo "{\\\\"files\\\\": [\\\\"a-$CYLC_TASK_CYCLE_POINT\\\\"]}" > "$TIDEWHEEL_OUTPUTS"
''')
work = flow.task("work", script='''
    echo "working on $CYLC_TASK_PARAM_file"
    echo "{\\\\"rows\\\\": 3}" > "$TIDEWHEEL_OUTPUTS"
''')


@flow.task
def gather(rows: list[int], before: list[int] = []) -> None:
    print("rows", rows, before)


with flow.cycle("P1"):
    find >> work
    results = work.map(file=find.value("files"))
    gather(results.value("rows"), results[-1].value("rows"))
"""


def test_scripts_are_mapped_too_and_a_join_takes_values_of_two_points(tidewheel):
    put(tidewheel.folder, {"scripts.py": SCRIPTS})
    ran = tidewheel("run", "scripts.py")
    assert ran.status == 0, ran.out + ran.err
    assert tidewheel("log", "scripts", "2/work_file0").out == "working on a-2\n"
    assert tidewheel("log", "scripts", "1/gather").out == "rows [3] []\n"
    assert tidewheel("log", "scripts", "2/gather").out == "rows [3] [3]\n"


INNER = """\
[scheduling]
    [[graph]]
        R1 = say
[runtime]
    [[say]]
        script = say-it "$CYLC_TASK_NAME"
"""
OUTER = """\
from tidewheel import Workflow

flow = Workflow("outer")
image = flow.task("image", workflow="./image/")
with flow.cycle("R1"):
    image >> flow.task("after", script="true")
"""
SAY = '#!/bin/sh\necho "it is $1"\n'


@pytest.mark.parametrize("way", ["run", "register"])
def test_a_task_in_python_is_a_run_of_a_folder_beside_the_file(tidewheel, way):
    folder = put(
        tidewheel.folder / "code",
        {
            "outer.py": OUTER,
            "image/flow.cylc": INNER,
            "image/bin/say-it": SAY,
            "data/large": "x" * 2_000_000,
        },
    )
    (folder / "image/bin/say-it").chmod(0o755)
    if way == "register":
        made = tidewheel("register", "code/outer.py", "--version", "1.0")
        assert made.status == 0, made.err
        ran = tidewheel("run", "outer")
    else:
        ran = tidewheel("run", "code/outer.py")
    assert ran.status == 0, ran.out + ran.err
    assert tidewheel("log", "outer/run1/1/image/01", "1/say").out == "it is say\n"


SITES = """\
from tidewheel import Workflow

flow = Workflow("sites")


@flow.task
def find() -> list[str]:
    return ["north", "south"]


@flow.task
def gather(said: list[dict[str, str]]) -> None:
    print(said)


one = flow.task("one", workflow="./one/")
gather(one.map(site=find()).value("say"))
"""
ONE = """\
#!jinja2
[scheduling]
    [[graph]]
        R1 = say
[runtime]
    [[say]]
        script = echo '{"site": "{{ CYLC_TASK_PARAM_site }}"}' > "$TIDEWHEEL_OUTPUTS"
"""


def test_a_run_of_a_workflow_is_mapped_as_any_task(tidewheel):
    put(tidewheel.folder, {"sites.py": SITES, "one/flow.cylc": ONE})
    ran = tidewheel("run", "sites.py")
    assert ran.status == 0, ran.out + ran.err
    said = tidewheel("log", "sites", "1/gather").out
    assert said == "[{'site': 'north'}, {'site': 'south'}]\n"


def test_a_folder_without_a_workflow_is_a_finding_of_the_python_file(tidewheel):
    put(tidewheel.folder, {"outer.py": OUTER})
    judged = tidewheel("validate", "outer.py")
    assert judged.status == 2
    said = judged.out + judged.err
    assert "image cannot be a run of ./image/: there is no file flow.cylc" in said
