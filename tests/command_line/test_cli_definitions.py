"""The commands about a definition, as somebody meets them who has just written one."""

import json
import signal
import subprocess
import sys
from xml.etree import ElementTree

import pytest

GOOD = '''
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    [[graph]]
        P1 = """
            publish[-P1] => prep? => MODELS
            MODELS:succeed-all => publish
            prep:fail? => alarm
        """
[runtime]
    [[root]]
        script = true
        [[[environment]]]
            SITE = north
    [[MODELS]]
        execution time limit = PT10M
    [[model_a, model_b]]
        inherit = MODELS
        [[[environment]]]
            MEMBER = 1
    [[prep]]
        [[[meta]]]
            title = Fetch what is needed
    [[publish, alarm]]
'''
BAD = """[scheduling]
    [[graph]]
        R1 = "prep => model"
[runtime]
    [[prep]]
        scirpt = true
    [[model]]
        inherit = MODELS
"""
TEMPLATE = """#!jinja2
%include 'more.cylc'
[scheduling]
    [[graph]]
        R1 = "{% for n in range(MEMBERS) %}m{{ n }} => {% endfor %}last"
"""
MORE = "[scheduler]\n    allow implicit tasks = True\n"


@pytest.fixture
def flow(tidewheel):
    """Writes a file of a definition into the folder `flow`."""

    def write(text, name="flow.cylc"):
        folder = tidewheel.folder / "flow"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    return write


def two_lines(answer):
    what, advice = answer.err.splitlines()
    return what.removeprefix("tidewheel: "), advice.strip()


def test_a_good_definition_is_valid_and_its_size_is_said(tidewheel, flow):
    flow(GOOD)
    answer = tidewheel("validate", "flow")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == "valid: 5 tasks, 1 family, 1 recurrence, 6 edges\n"
    assert tidewheel("--json", "validate", "flow").json == {
        "valid": True,
        "findings": [],
        "counts": {"tasks": 5, "families": 1, "recurrences": 1, "edges": 6},
    }


def test_every_mistake_is_shown_with_its_line_and_what_to_do(tidewheel, flow):
    flow(BAD)
    answer = tidewheel("validate", "flow")
    assert answer.status == 2
    assert answer.out.splitlines() == [
        "flow/flow.cylc:6:9: error: there is no item [runtime][prep]scirpt",
        "  | scirpt = true",
        "  | ^",
        "    did you mean 'script'?",
        "flow/flow.cylc:8:9: error: 'model' inherits from 'MODELS', which is not defined",
        "  | inherit = MODELS",
        "  | ^",
        "    add [[MODELS]] under [runtime]",
        "not valid: 2 errors",
    ]
    refused = tidewheel("run", "flow")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.splitlines() == [*answer.out.splitlines()[:-1], "nothing was started"]
    whole = str(tidewheel.folder / "flow" / "flow.cylc")
    assert tidewheel("validate", whole).out.startswith("flow/flow.cylc:6:9: error: ")
    first = tidewheel("validate", "flow", "--json").json["findings"][0]
    assert (first["code"], first["file"], first["line"]) == ("unknown-item", "flow.cylc", 6)


def test_warnings_are_errors_to_those_who_are_strict(tidewheel, flow):
    flow(
        "[scheduling]\n [[graph]]\n  R1 = a => b\n"
        "[runtime]\n [[root]]\n  script = true\n [[a]]\n"
    )
    lenient, strict = tidewheel("validate", "flow"), tidewheel("validate", "--strict", "flow")
    assert (lenient.status, strict.status) == (0, 2)
    assert "warning: " in lenient.out
    assert "warning: " not in strict.out
    assert strict.out.splitlines()[-1] == "not valid: 1 error"
    assert tidewheel("validate", "--compat", "cylc8", "flow").status == 2


def test_a_terminal_gets_colour(tidewheel, flow):
    flow(BAD)
    shown = tidewheel.on_terminal("validate", "flow").out
    assert "\x1b[31m\x1b[1merror" in shown
    assert "\x1b" not in tidewheel("validate", "flow").out


def test_the_folder_you_are_in_needs_no_name(tidewheel):
    (tidewheel.folder / "flow.cylc").write_text(GOOD, encoding="utf-8")
    assert tidewheel("validate").status == 0


@pytest.mark.parametrize(
    ("name", "arguments", "what", "advice"),
    [
        (None, ["validate", "flow"], "there is no file or folder flow", ""),
        ("x", ["graph", "flow"], "there is no flow.cylc in flow", "name a folder"),
        ("suite.rc", ["list", "flow"], "suite.rc is a file of Cylc 7", "rename the file"),
        ("flow.cylc", ["graph", "flow", "5", "3"], "STOP 3 is before START 5", "Give the"),
        ("flow.cylc", ["graph", "flow", "x"], "'x' is no", "integer"),
        ("flow.cylc", ["graph", "flow", "--svg", "3"], "--svg takes a file", "See:"),
        ("flow.cylc", ["graph", "flow", "-g", "MODEL"], "no family 'MODEL'", "'MODELS'?"),
        ("flow.cylc", ["config", "flow", "-t", "pre"], "or family 'pre'", "'prep'?"),
        ("flow.cylc", ["config", "flow", "-i", "[runtim]"], "no item '[runtim]'", "[runtime]"),
        (
            "flow.cylc",
            ["graph", "flow", "--dot", "--reference", "--json"],
            "give only one of",
            "",
        ),
    ],
)
def test_a_wrong_request_says_what_would_be_right(
    tidewheel, flow, name, arguments, what, advice
):
    if name is not None:
        flow(GOOD, name)
    refused = tidewheel(*arguments)
    said = refused.out + refused.err
    assert refused.status == 2
    assert what in said
    assert advice.lower() in said.lower()
    assert "Traceback" not in said


def test_the_graph_is_text_that_says_who_waits_for_whom(tidewheel, flow):
    flow(GOOD)
    assert tidewheel("graph", "flow", "1", "P1").out.splitlines() == [
        "1",
        "  prep",
        "    model_a    after prep",
        "    model_b    after prep",
        "    alarm      after prep:failed",
        "      publish  after all of MODELS",
        "2",
        "  prep         after 1/publish",
        "    model_a    after prep",
        "    model_b    after prep",
        "    alarm      after prep:failed",
        "      publish  after all of MODELS",
    ]


def test_the_reference_format_is_cylcs(tidewheel, flow):
    flow(
        "[scheduling]\n cycling mode = integer\n [[graph]]\n  P1 = a[-P1] => a\n"
        "[runtime]\n [[a]]\n"
    )
    assert tidewheel("graph", "flow", "--reference", "1", "2").out.splitlines() == [
        'edge "1/a" "2/a"',
        "graph",
        'node "1/a" "a\\n1"',
        'node "2/a" "a\\n2"',
        "stop",
    ]


def test_more_than_anybody_can_read_is_cut_at_a_point_or_refused_as_a_picture(tidewheel, flow):
    flow(GOOD)
    text = tidewheel("graph", "flow", "1", "1000000")
    assert text.out.splitlines().count("1000") == 1
    assert "1001" not in text.out.splitlines()
    assert text.err == (
        "there are too many tasks: only those up to 1000 are shown; give an earlier STOP\n"
    )
    picture = tidewheel("graph", "flow", "1", "2000", "--svg")
    assert two_lines(picture)[0] == "the picture would have 10000 boxes and 11999 lines"


def test_a_graph_with_mistakes_is_shown_all_the_same(tidewheel, flow):
    flow(BAD)
    answer = tidewheel("graph", "flow", "--reference")
    assert answer.status == 2
    assert answer.out.startswith('edge "1/prep" "1/model"')
    assert "did you mean 'script'?" in answer.err


def test_a_graph_that_a_mistake_leaves_empty_is_not_blamed_on_the_points(tidewheel, flow):
    flow("[scheduling]\n    [[graph]]\n        R1 = a =>\n")
    shown = tidewheel("graph", "flow")
    assert (shown.status, shown.out) == (2, "the graph has no tasks\n")


def test_the_graph_for_programs(tidewheel, flow):
    flow(GOOD)
    graph = tidewheel("graph", "flow", "1", "1", "--json").json
    assert graph["points"] == ["1"]
    assert {task["id"]: task["family"] for task in graph["tasks"]}["1/model_a"] == "MODELS"
    edges = {(edge["parent"], edge["child"]): edge for edge in graph["edges"]}
    assert edges["1/prep", "1/alarm"] == {
        "parent": "1/prep",
        "child": "1/alarm",
        "outputs": ["failed"],
        "certain": False,
        "suicide": False,
    }


def test_the_graph_is_a_picture_with_families_points_and_nothing_from_elsewhere(
    tidewheel, flow
):
    flow(GOOD)
    answer = tidewheel("graph", "flow", "1", "2", "--cycles", "--svg", "graph.svg")
    assert (answer.status, answer.out) == (0, "")
    text = (tidewheel.folder / "graph.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    titles = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert titles.count("MODELS") == 2
    assert {"1", "2", "model_a", "publish", "failed"} <= set(titles)
    assert "href" not in text
    piled = tidewheel("graph", "flow", "1", "1", "--group-all", "--svg").out
    assert "model_a" not in piled
    dot = tidewheel("graph", "flow", "1", "1", "--dot").out
    assert '"1/prep" -> "1/alarm" [style=dashed' in dot
    assert "subgraph cluster_0 {" in dot


def test_tasks_are_listed_with_titles_as_a_tree_and_by_point(tidewheel, flow):
    flow(GOOD)
    assert tidewheel("list", "flow").out.splitlines() == [
        "alarm",
        "model_a",
        "model_b",
        "prep  Fetch what is needed",
        "publish",
    ]
    assert tidewheel("list", "flow", "--tree").out.splitlines() == [
        "root",
        "├─ MODELS",
        "│  ├─ model_a",
        "│  └─ model_b",
        "├─ alarm",
        "├─ prep  Fetch what is needed",
        "└─ publish",
    ]
    assert tidewheel("list", "flow", "--all").out.split()[:2] == ["MODELS", "alarm"]
    points = tidewheel("list", "flow", "--points", "1", "P1", "--json").json["points"]
    assert [(one["point"], len(one["tasks"])) for one in points] == [("1", 5), ("2", 5)]


def test_the_settings_of_a_task_are_those_it_inherits(tidewheel, flow):
    flow(GOOD)
    assert tidewheel("config", "flow", "--task", "model_a").out.splitlines() == [
        "[runtime]",
        "    [[model_a]]",
        "        script = true",
        "        execution time limit = PT10M",
        "        inherit = MODELS",
        "        completion = succeeded",
        "        [[[environment]]]",
        "            SITE = north",
        "            MEMBER = 1",
    ]
    items = ["-i", "[runtime][model_b][environment]SITE", "-i", "[runtime][prep]completion"]
    assert tidewheel("config", "flow", *items).out == "north\nsucceeded or failed\n"
    assert tidewheel("config", "flow", "-i", "[runtime][prep]pre-script").out == "\n"


def test_what_config_prints_is_a_definition_of_the_same_graph(tidewheel, flow):
    flow(GOOD)
    before = tidewheel("graph", "flow", "--reference").out
    flow(tidewheel("config", "flow").out)
    assert tidewheel("validate", "flow").status == 0
    assert tidewheel("graph", "flow", "--reference").out == before


def test_the_text_is_shown_before_and_after_templates(tidewheel, flow):
    flow(TEMPLATE)
    flow(MORE, "more.cylc")
    plain = tidewheel("view", "flow", "--plain").out
    assert plain == TEMPLATE.replace("%include 'more.cylc'\n", MORE)
    shown = tidewheel("view", "flow", "-s", "MEMBERS=2", "--mark").out.splitlines()
    assert shown[1] == "more.cylc:2 |     allow implicit tasks = True"
    assert shown[-1] == 'flow.cylc:5 |         R1 = "m0 => m1 => last"'
    refused = tidewheel("view", "flow", "--json")
    assert refused.status == 2
    assert json.loads(refused.err)["error"]["findings"][0]["file"] == "flow.cylc"
    (tidewheel.folder / "set").write_text("MEMBERS = 1\n", encoding="utf-8")
    assert "m0 => last" in tidewheel("view", "flow", "--set-file", "set").out


def test_nothing_heavy_is_loaded_for_a_definition_without_templates(tidewheel, flow):
    flow(GOOD)
    heavy = ("asyncio", "apsw", "jinja2", "rich", "tidewheel.client", "tidewheel.store")
    look = (
        "import sys; from tidewheel.cli.main import run; run(sys.argv[1:]);"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", look, "validate", "flow"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tidewheel.folder
    )
    assert done.stderr == "[]\n"


def test_a_shell_completes_the_commands_and_their_options(tidewheel):
    def completed(line, number):
        words = {"COMP_WORDS": line, "COMP_CWORD": str(number)}
        answer = tidewheel(_TIDEWHEEL_COMPLETE="bash_complete", **words)
        return [word.partition(",")[2] for word in answer.out.split()]

    assert completed("tidewheel val", 1) == ["validate"]
    assert completed("tidewheel view fl", 2) == ["fl"]  # a file or folder: the shell knows
    assert completed("tidewheel graph --gr", 2) == ["--group", "--group-all"]


PYTHON = """\
from tidewheel import Workflow

flow = Workflow("small", final=2)
ensemble = flow.family("ENS")
first = flow.task("first", script="true")
member = flow.task("member", script="true", family=ensemble)
with flow.cycle("P1"):
    (first & member[-1]) >> member
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("validate",), "valid: 2 tasks, 1 family"),
        (("list", "--tree"), "ENS"),
        (("graph", "--reference"), 'edge "1/member" "2/member"'),
    ],
)
def test_a_workflow_in_python_is_shown_like_a_flow_file(tidewheel, flow, arguments, expected):
    flow(PYTHON, "small.py")
    command, *options = arguments
    answer = tidewheel(command, "flow/small.py", *options)
    assert (answer.status, answer.err) == (0, "")
    assert expected in answer.out


def test_the_text_of_a_workflow_in_python_is_not_shown(tidewheel, flow):
    flow(PYTHON, "small.py")
    answer = tidewheel("config", "flow/small.py")
    assert answer.status == 2
    assert "use validate, graph or list" in answer.err.lower()


# Python files that are bad to their author.


def test_an_error_in_a_python_file_is_told_with_the_calls_that_led_to_it(tidewheel, flow):
    flow(
        "from tidewheel import Workflow\nfrom aside import read\nflow = Workflow(read())\n",
        "x.py",
    )
    flow("CONFIG = {}\n\n\ndef read():\n    return CONFIG['x']\n", "aside.py")
    answer = tidewheel("validate", "flow/x.py")
    assert answer.status == 2
    assert "x.py:3: error: the file could not be executed: KeyError: 'x'" in answer.out
    assert "x.py:3 in <module>: flow = Workflow(read()) → " in answer.out
    assert "aside.py:5 in read: return CONFIG['x']" in answer.out
    assert "runpy" not in answer.out


def test_what_a_python_file_prints_is_not_part_of_the_answer(tidewheel, flow):
    flow(f"print('x' * 1_000_000)\n{PYTHON}", "loud.py")
    answer = tidewheel("validate", "flow/loud.py", "--json")
    assert (answer.status, answer.json["valid"]) == (0, True)
    assert len(answer.err) > 1_000_000


def test_a_huge_error_of_a_python_file_is_told_short(tidewheel, flow):
    flow("raise ValueError('x' * 1_000_000)\n", "huge.py")
    answer = tidewheel("validate", "flow/huge.py")
    assert answer.status == 2
    assert len(answer.out + answer.err) < 10_000


@pytest.mark.parametrize("command", ["validate", "register", "run"])
def test_a_python_file_without_an_end_is_told_and_ended_by_the_keyboard(
    tidewheel, flow, command
):
    flow("while True:\n    pass\n", "endless.py")
    with tidewheel.started(command, "flow/endless.py") as program:
        program.read_until("still executing flow/endless.py, line ")
        program.send(signal.SIGINT)
        assert program.wait().status == 130
