"""flow.cylc: Jinja2, its variables, and where in the template a line came from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.patience import eventually_told
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.flow_cylc.source_loader import SourceOptions, read_source
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.template_variables import VariableTexts, read_variables

TRUSTED = SourceOptions(code_trusted=True)


def render(
    folder: Path, template: str, *variables: str, options: SourceOptions = TRUSTED
) -> tuple[SourceText, list[str]]:
    (folder / "flow.cylc").write_text("#!jinja2\n" + dedent(template))
    findings = Findings()
    if variables:
        options = SourceOptions(variables=VariableTexts(settings=variables), code_trusted=True)
    source = read_source(folder, options, findings)
    return source, [
        f"{one.position} {one.code}: {one.message} | {one.hint}" for one in findings
    ]


def places(source: SourceText) -> list[str]:
    return [f"{source.position(n)} {line.strip()}" for n, line in enumerate(source.lines)]


def test_each_line_knows_the_line_of_the_template_that_made_it(tmp_path):
    (tmp_path / "part.cylc").write_text("{% if N %}\npart = {{ N }}\n{% endif %}\n")
    (tmp_path / "inlined.cylc").write_text("\ninlined = {{ N }}\n")
    source, found = render(
        tmp_path,
        """\
        {# a comment
           of two lines #}
        [runtime]
        {% for name in NAMES %}
            {% if name == "b" %}
            [[{{ name }}]]
            {% else %}
            [[other]]
            {% endif %}
                script = run {{ name }}
        {%- endfor %}
        {% include "part.cylc" %}
        %include 'inlined.cylc'
        text = \"\"\"
        {{ "one" }}

        two\"\"\"
        """,
        "NAMES=['a', 'b']",
        "N=3",
    )
    assert found == []
    assert places(source) == [
        "flow.cylc:4 [runtime]",
        "flow.cylc:9 [[other]]",
        "flow.cylc:11 script = run a",
        "flow.cylc:7 [[b]]",
        "flow.cylc:11 script = run b",
        "part.cylc:2 part = 3",
        "inlined.cylc:2 inlined = 3",
        'flow.cylc:15 text = """',
        "flow.cylc:16 one",
        'flow.cylc:18 two"""',
    ]
    assert source.templated


@pytest.mark.slow
def test_macros_that_look_at_their_own_text_are_not_disturbed_by_the_tracing(tmp_path):
    source, found = render(
        tmp_path,
        """\
        {% macro task(name) %}
        [[{{ name }}]]
        {% endmacro %}
        {% set block %}
        x = 1
        {% endset %}
        length = {{ task("a") | length }} {{ block | length }}
        {{ task("b") | trim }}
        {{ task("c") }}
        {{ block }}
        """,
    )
    assert found == []
    assert [line.strip() for line in source.lines] == [
        "length = 7 7",
        "[[b]]",
        "[[c]]",
        "x = 1",
    ]
    assert [source.position(n).line for n in range(4)] == [8, 9, 10, 11]


def test_a_macro_that_only_writes_is_traced_into(tmp_path):
    source, _ = render(
        tmp_path, "{% macro task(name) %}\n[[{{ name }}]]\n{% endmacro %}\n{{ task('a') }}\n"
    )
    assert places(source) == ["flow.cylc:3 [[a]]"]


@pytest.mark.slow
def test_what_cylc_adds_to_jinja2_is_there(tmp_path):
    for folder, name, code in [
        (
            "Jinja2Filters",
            "twice",
            "import shared\n\n\ndef twice(x):\n    return x * shared.TWO\n",
        ),
        ("Jinja2Tests", "even", "def even(x):\n    return x % 2 == 0\n"),
        ("Jinja2Globals", "greet", "def greet(x):\n    print('noise')\n    return 'hi ' + x\n"),
        ("lib/python", "shared", "TWO = 2\n"),
    ]:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{name}.py").write_text(code)
    source, found = render(
        tmp_path,
        """\
        {{ "PT1H" | duration_as("m") | int }} {{ 7 | pad(3, 0) }}
        {{ "20300102T03Z" | strftime("%Y/%m") }} {{ "01,02,2030" | strftime("%j", "%d,%m,%Y") }}
        {{ "ab" | twice }} {{ 4 is even }} {{ greet("you") }}
        {{ environ["TIDEWHEEL_TEST"] }} {{ CYLC_VERSION }} {{ CYLC_WORKFLOW_NAME_BASE }}
        {{ CYLC_TEMPLATE_VARS["X"] }}{{ assert(X == 1, "no") }}
        {% set all = [] %}{% do all.append(X) %}{{ all }}
        {% from "itertools" import product %}{{ product([1, 2], [3]) | list | length }}
        """,
        "X=1",
    )
    assert found == []
    assert source.lines == [
        "60 007",
        "2030/01 032",
        "abab True hi you",
        f"here 8.5.4 {tmp_path.name}",
        "1",
        "[1]",
        "2",
    ]


@pytest.fixture(autouse=True)
def _a_variable_of_the_environment(monkeypatch):
    monkeypatch.setenv("TIDEWHEEL_TEST", "here")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "words"),
    [
        (
            "a\n{{ MEMBRES }}",
            "flow.cylc:3 template-undefined: 'MEMBRES' is undefined | give it",
        ),
        ("{% if X %}\na", "flow.cylc:2 template-syntax: the {% if %} that begins here is not"),
        ("{% include 'bad.cylc' %}", "bad.cylc:2 template-undefined"),
        ("{% include 'link' %}", "flow.cylc:2 outside-source"),
        ("{{ 'a' * 10**9 }}", "template-too-large: rendering needs more than 256 MiB"),
        ("{% for i in range(99) %}{{ 'x' * 99999 }}{% endfor %}", "renders to more than"),
    ],
)
def test_a_template_that_fails_is_a_finding_with_its_line(tmp_path, template, words):
    folder = tmp_path / "flow"
    folder.mkdir()
    (folder / "bad.cylc").write_text("fine\n{{ NOBODY }}\n")
    (folder / "link").symlink_to("/etc/hostname")
    source, found = render(folder, template)
    assert len(found) == 1
    assert words in found[0]
    assert list(source.lines) == []


@pytest.mark.slow
def test_a_template_without_end_is_ended_with_all_that_it_started(tmp_path):
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    own = f"sleep 999.{os.getpid()}"  # nobody else's on this machine
    _, found = render(
        tmp_path, f'{{% import "os" as os %}}{{{{ os.system("{own} &") }}}}' + loop
    )
    assert [one.split()[1] for one in found] == ["template-too-slow:"]

    def is_gone() -> bool:
        processes = subprocess.run(
            ["ps", "-eo", "args"], capture_output=True, text=True, check=True
        )
        return own not in processes.stdout.splitlines()

    # It has been killed, but the kernel ends it only when a processor is free.
    eventually_told(is_gone, "what the template had started still runs")


def test_a_template_that_sleeps_is_not_waited_for(tmp_path):
    _, found = render(tmp_path, '{% import "time" as time %}{{ time.sleep(600) }}')
    assert [one.split()[1] for one in found] == ["template-too-slow:"]


@pytest.mark.slow
def test_a_strangers_template_reaches_no_code_and_no_environment(tmp_path):
    (tmp_path / "Jinja2Filters").mkdir()
    (tmp_path / "Jinja2Filters" / "twice.py").write_text("def twice(x):\n    return x * 2\n")
    stranger = SourceOptions(code_trusted=False)
    _, found = render(tmp_path, "{{ 'a' | twice }}", options=stranger)
    assert "No filter named 'twice'" in found[0]
    _, found = render(tmp_path, "{% import 'os' as os %}", options=stranger)
    assert "there is no file os" in found[0]
    source, _ = render(tmp_path, "[{{ environ | length }}]", options=stranger)
    assert source.lines == ["[0]"]


@pytest.mark.parametrize("answer", ["[1]", "{}", '{"lines": [1], "origins": [], "files": []}'])
def test_a_filter_that_answers_for_the_renderer_is_not_believed(tmp_path, answer):
    (tmp_path / "Jinja2Filters").mkdir()
    (tmp_path / "Jinja2Filters" / "evil.py").write_text(
        "import os\n\n\ndef evil(x):\n    for number in range(3, 9):\n        try:\n"
        f"            os.write(number, {answer.encode()!r})\n        except OSError:\n"
        "            pass\n    os._exit(0)\n"
    )
    _, found = render(tmp_path, "{{ 1 | evil }}")
    assert [one.split()[1] for one in found] == ["template-failed:"]


def test_custom_code_is_read_from_the_folder_only(tmp_path):
    folder = tmp_path / "flow"
    (folder / "Jinja2Filters").mkdir(parents=True)
    (tmp_path / "outside.py").write_text("def outside(x):\n    return x\n")
    (folder / "Jinja2Filters" / "outside.py").symlink_to(tmp_path / "outside.py")
    _, found = render(folder, "{{ 1 | outside }}")
    assert "outside of the workflow's folder" in found[0]


def test_jinja2_without_its_first_line_is_worth_a_warning(tmp_path):
    (tmp_path / "flow.cylc").write_text("\n#!jinja2\n[meta]\ntitle = {{ X }}\n")
    findings = Findings()
    read_source(tmp_path, SourceOptions(), findings)
    assert [(one.position.line, one.code) for one in findings] == [(4, "template-not-rendered")]


def test_a_plain_file_loads_no_template_engine(tmp_path):
    (tmp_path / "flow.cylc").write_text("[scheduling]\n[[graph]]\nR1 = a\n")
    code = dedent("""
        import sys
        from pathlib import Path
        from tidewheel.core.graph.findings import Findings
        from tidewheel.formats.flow_cylc.source_loader import SourceOptions
        from tidewheel.formats.flow_cylc.settings import read_flow
        read_flow(Path(sys.argv[1]), SourceOptions(), Findings())
        print({"jinja2", "subprocess", "metomi"} & set(sys.modules))
    """)
    command = [sys.executable, "-c", code, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert run.stdout == "set()\n"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("N=3", 3),
        ("N = 'text'", "text"),
        ("N=['a', 1.5, None]", ["a", 1.5, None]),
        ("N={'k': (1, 2)}", {"k": (1, 2)}),
        ("N=True", True),
        ("N='a=b'", "a=b"),
    ],
)
def test_variables_are_python_literals(setting, value):
    findings = Findings()
    assert read_variables(VariableTexts(settings=(setting,)), findings) == {"N": value}
    assert list(findings) == []


@pytest.mark.slow
def test_a_variable_that_no_template_looks_up_is_told_with_the_one_that_was_meant(tmp_path):
    (tmp_path / "part.cylc").write_text("{{ SITE }}\n")
    text = "{% set SAMPLES = SAMPLES | default(2) %}\n{{ SAMPLES }}{% include 'part.cylc' %}\n"
    _, told = render(tmp_path, text, "SAMPELS=3", "SITE=1", "Q=2")
    assert told == [
        " unused-variable: no template uses SAMPELS | did you mean SAMPLES?",
        " unused-variable: no template uses Q | templates use SAMPLES, SITE",
    ]
    assert render(tmp_path, text, "SAMPLES=3", "SITE=1")[1] == []
    _, told = render(tmp_path, "{{ SITE }}\n", "SITE=1", "Q=2")
    assert told == [" unused-variable: no template uses Q | templates use SITE"]
    assert render(tmp_path, "{{ CYLC_TEMPLATE_VARS | length }}", "Q=3")[1] == []


def test_variables_of_a_file_that_is_no_template_are_told_to_change_nothing(tmp_path):
    (tmp_path / "flow.cylc").write_text("[meta]\n    title = plain\n")
    findings = Findings()
    options = SourceOptions(variables=VariableTexts(settings=("N=3",)))
    read_source(tmp_path, options, findings)
    (told,) = findings
    assert told.message == "nothing uses N: flow.cylc is not a template"


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("N=north", "a string needs quotes inside the shell's quotes: -s \"N='north'\""),
        ("N=[1,", "expected numbers"),
        ("N=open('x')", "expected numbers"),
        ("N=" + "[" * 9999, "expected numbers"),
        ("just words", "write for example: MEMBERS=10"),
        ("=3", "write for example: MEMBERS=10"),
    ],
)
def test_a_variable_that_is_no_literal_is_refused_with_a_hint(setting, hint):
    findings = Findings()
    assert read_variables(VariableTexts(settings=(setting,)), findings) == {}
    assert [hint in one.hint for one in findings] == [True]


def test_the_command_line_wins_over_a_file_of_variables(tmp_path):
    file = tmp_path / "vars"
    file.write_text("# site\nA = 1\nB = 'file'  # said here\n\nC = oops\n")
    findings = Findings()
    texts = VariableTexts(settings=("B='line'",), lists=("L=x,'y,z'",), file=file)
    variables = read_variables(texts, findings)
    assert variables == {"A": 1, "B": "line", "L": ["x", "y,z"]}
    assert [one.position.line for one in findings] == [5]


def test_a_missing_file_of_variables_is_a_finding(tmp_path):
    findings = Findings()
    assert read_variables(VariableTexts(file=tmp_path / "none"), findings) == {}
    assert [one.code for one in findings] == ["bad-variable-file"]
