"""A workflow in Python as the flow.cylc that servers keep: it means the same, or is refused."""

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel import Workflow, all_of, any_of
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.formats.flow_cylc.source_loader import SourceOptions
from tidewheel.formats.flow_cylc.workflow import LoadOptions, PointTexts, load_workflow
from tidewheel.formats.python_api import InvalidDefinition, ReadOptions, load_python

pytestmark = pytest.mark.req("R007-12")
NOW = 1_900_000_000.0


def read(text: str, tmp_path: Path, name: str = "w"):
    """The text as a reader of flow.cylc finds it in a folder."""
    (tmp_path / "flow.cylc").write_text(text, encoding="utf-8")
    findings = Findings()
    how = LoadOptions(now=NOW, name=name, source=SourceOptions(), points=PointTexts())
    loaded = load_workflow(tmp_path, how, findings)
    assert [str(one) for one in findings if one.severity is Severity.ERROR] == []
    return loaded.workflow


def greet() -> int:
    return 1


def tell(text: int, times: int = 2) -> None:
    pass


def everything() -> Workflow:
    flow = Workflow(
        "w",
        cycling="gregorian",
        initial="20300101T00Z",
        final="+P2D",
        stop="20300102T12Z",
        hold_after="20300102T00Z",
        runahead="P3",
        time_zone="+0100",
        point_format="CCYY-MM-DDThhmm+0100",
    )
    flow.defaults(environment={"REGION": 'the "north"', "N": 3}, retries=2)
    big = flow.family("BIG", script="perturb \\\n  --all", time_limit="PT30M")
    small = flow.family("SMALL", family=big, environment={"SIZE": "# 1"}, sequential=True)
    a = flow.task("a", run=["get", "it's", 'a "b"'], expire_after="PT6H", wait_for_clock="PT1H")
    b = flow.task(
        "b",
        family=[small],
        script="if true; then\n    echo '# no comment'\nfi",
        pre_script='echo "last"',
        outputs={"ready": "the data is there", "late": "it's late"},
        completion="succeeded or (failed and ready)",
        submission_retries=["PT1M", 30],
        directives={"--ntasks": 4, "-q": "long"},
        platform="hpc",
        meta={"title": "B, of = course", "URL": "https://example.org/#b"},
        events={"mail_events": ["failed", "late"], "handlers": ["tell --of '%(event)s, now'"]},
        mail={"to": "somebody@example.org"},
        simulation={"default_run_length": "PT1M", "fail_cycle_points": ["all"]},
        wait_for_message="it's there: (now)",
    )
    c = flow.task(
        "c", run_mode="skip", skip={"outputs": ["succeeded"]}, work_subdirectory="x/y"
    )
    d = flow.task("greet")(greet)
    e = flow.task(environment={"X": "y"})(tell)
    clock = flow.xtrigger("clock", "wall_clock", offset="PT1H", interval="PT30S")
    other = flow.xtrigger("other", "echo", "1", 2, True, succeed=True, text="a, 'b' c")
    flow.limit("heavy", 2, [a, small])
    flow.limit("default", 7)
    with flow.cycle("T00, T12"):
        (clock & a.optional & b["-PT12H"].optional) >> (b & c)
        any_of(a.failed.optional, b.output("ready").optional & c) >> ~d
        e(d)
        big.all.finished >> c
    with flow.cycle("R1"):
        other >> all_of(a.optional, c)
        flow.place(d)
    return flow


def test_a_workflow_with_every_kind_of_setting_is_written_and_means_the_same(tmp_path):
    options = ReadOptions(now=NOW)
    flow = everything()
    ours, theirs = flow.definition(options), read(flow.flow_text(options), tmp_path)
    assert theirs.cycling == ours.cycling
    assert theirs.nodes == ours.nodes
    assert theirs.nodes["b"].scripts.main == ours.nodes["b"].scripts.main
    assert theirs.special == ours.special
    assert [one.recurrence for one in theirs.sections] == ["T00", "T12", "R1"]
    called = [(one.function, one.arguments, one.keywords) for one in theirs.xtriggers.values()]
    assert called == [
        (one.function, one.arguments, one.keywords) for one in ours.xtriggers.values()
    ]
    assert {(one.name, one.limit) for one in theirs.limit_groups} == {
        ("default", 7),
        ("heavy", 2),
    }


def test_a_function_is_called_by_a_file_in_the_folder_of_the_run(tmp_path):
    text = everything().flow_text(ReadOptions(now=NOW))
    assert '"$TIDEWHEEL_RUN_DIR"/test_python_flow_text.py' not in text  # it is in a package
    file = tmp_path / "my flow.py"
    file.write_text(
        "from tidewheel import Workflow\nflow = Workflow('w')\n\n\n@flow.task\ndef a(): pass\n"
        "with flow.cycle('R1'):\n    flow.place(a)\n"
    )
    flow = load_python(file, Findings())
    script = flow.definition().nodes["a"].scripts.main
    assert script.endswith("\"$TIDEWHEEL_RUN_DIR\"/'my flow.py' a")
    assert str(tmp_path) not in flow.flow_text()


def test_a_workflow_that_runs_once_is_written(tmp_path):
    flow = Workflow("w")
    flow.task("b", script="true", retries=[])
    with flow.cycle("R1"):
        flow.task("a", script="") >> flow.task("c", script="x", time_limit=0.5)
    assert read(flow.flow_text(), tmp_path).cycling == flow.definition().cycling


@pytest.mark.parametrize(
    "script", ["echo '''a''' \"\"\"b\"\"\"", "a\x0cb", "a\u2028b", "a\rb", "a\0b", "\ud800"]
)
def test_what_cannot_be_written_is_refused_whole(script):
    flow = Workflow("w")
    with flow.cycle("R1"):
        flow.place(flow.task("a", script=script))
    with pytest.raises(InvalidDefinition):
        flow.flow_text()


@pytest.mark.parametrize(
    "script",
    [
        "cat <<'E'\n%include 'secrets'\nE",
        "run \\\n  --all",
        "echo 'a \\\nb'",
        "docker ps --format '{{ .Names }}' {% x %}",
        "#!jinja2\necho {{ x }}",
    ],
)
def test_what_a_flow_cylc_would_change_is_taken_as_it_stands(script, tmp_path):
    """Includes, templates and continued lines are of people; the text says that it has none."""
    (tmp_path / "secrets").write_text("a secret\n")
    flow = Workflow("w")
    with flow.cycle("R1"):
        flow.place(flow.task("a", script=script))
    assert read(flow.flow_text(), tmp_path).nodes["a"].scripts.main == script


@given(st.text(max_size=60), st.text(alphabet="\"'#\\\n$ a%{}[]=,<>", max_size=60))
def test_any_text_is_written_as_it_is_or_refused(one, other):
    """The oracle is the reader of flow.cylc."""
    flow = Workflow("w")
    with flow.cycle("R1"):
        flow.place(flow.task("a", script=one, environment={"X": other}))
    try:
        text = flow.flow_text()
    except InvalidDefinition:
        return
    with TemporaryDirectory() as folder:
        node = read(text, Path(folder)).nodes["a"]
    assert node == flow.definition().nodes["a"]


def test_an_xtrigger_of_the_workflows_own_is_found_beside_its_file(tmp_path):
    library = tmp_path / "lib" / "python"
    library.mkdir(parents=True)
    (library / "mine.py").write_text("def mine():\n    return True, {}\n")
    (tmp_path / "flow.py").write_text(
        "from tidewheel import Workflow\nflow = Workflow('w')\n"
        "a = flow.task('a', script='true')\nx = flow.xtrigger('x', 'mine')\n"
        "with flow.cycle('R1'):\n    x >> a\n"
    )
    flow = load_python(tmp_path / "flow.py", Findings())
    assert list(read(flow.flow_text(), tmp_path).xtriggers) == ["x"]


def test_a_large_workflow_is_written():
    flow = Workflow("w", initial=1, final=2)
    tasks = [flow.task(f"t{number}", script="true") for number in range(2_000)]
    with flow.cycle("P1"):
        for before, after in itertools.pairwise(tasks):
            before >> after
    assert flow.flow_text().count(" => ") == 1_999
