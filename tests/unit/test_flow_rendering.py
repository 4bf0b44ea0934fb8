"""What the child process that renders a template answers, asked without a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidewheel.formats.flow_cylc.template_environment import answers


def answer(folder: Path, text: str, **variables: object) -> dict[str, object]:
    job = {
        "text": text,
        "folder": str(folder),
        "variables": {name: repr(value) for name, value in variables.items()},
        "names": {"CYLC_WORKFLOW_NAME": "w"},
        "code_trusted": True,
        "memory_bytes": 1,
        "output_bytes": 1000,
    }
    return next(answers(job))


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a\n{% fro x in y %}", "template-syntax", 2),
        ("{% for x in [] %}\n{% if x %}\n{% endif %}", "template-syntax", 1),
        ("a\n{{ 1 + 'x' }}", "template-failed", 2),
        ("a\n\n{{ raise('Too many') }}", "template-raised", 3),
        ("{{ assert(1 > 2, 'No') }}", "template-raised", 1),
        ("{{ ''.__class__ }}", "template-forbidden", 1),
        ("{{ 1 | nothing }}", "template-syntax", 1),
        ("\n{% include 'missing' %}", "no-such-file", 2),
        ("{% include '../x' %}", "outside-source", 1),
        ("{% include '/etc/hostname' %}", "outside-source", 1),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "template-failed", 1),
        ("{{ '\\0' }}", "not-text", 0),
        ("{{ 'x' * 2000 }}", "template-too-large", 0),
        ("{{ 'P1' | duration_as('m') }}", "template-failed", 1),
        ("{{ 'P1D' | duration_as('moons') }}", "template-failed", 1),
    ],
)
def test_what_goes_wrong_has_a_code_and_a_line(tmp_path, text, code, line):
    answered = answer(tmp_path, text)
    assert (answered["code"], answered.get("line", 0)) == (code, line)


def test_a_near_name_is_offered_for_an_unknown_one(tmp_path):
    answered = answer(tmp_path, "{{ MEMBRES }}", MEMBERS=3)
    assert answered["hint"] == "give it a value: -s MEMBRES=VALUE; did you mean 'MEMBERS'?"
    own = answer(tmp_path, "{% set MEMBERS = 3 %}\n{{ MEMBRES }}")
    assert own["hint"] == answered["hint"]


def test_lines_come_with_their_origins(tmp_path):
    answered = answer(tmp_path, "{% for i in [1, 2] %}\na{{ i }}\n{% endfor %}")
    lines = list(zip(answered["lines"], answered["origins"], strict=True))
    assert [(line, origin) for line, origin in lines if line] == [
        ("a1", (0, 2)),
        ("a2", (0, 2)),
    ]


def test_text_by_chance_is_looked_up_by_its_wording(tmp_path):
    # Two renderings never agree, so that marks tell nothing.
    text = "{% macro m() %}{{ range(10**5) | random }}{% endmacro %}\nfirst\n{{ m() }}\nlast\n"
    answered = answer(tmp_path, text)
    found = dict(zip(answered["lines"], answered["origins"], strict=True))
    assert (found["first"], found["last"]) == ((0, 2), (0, 4))


def test_a_block_that_is_captured_is_not_marked(tmp_path):
    text = "{% set x %}\nab\n{% endset %}{% filter upper %}c{{ x | length }}{% endfilter %}"
    assert answer(tmp_path, text)["lines"] == ["C4"]


def test_template_variables_are_those_that_were_given(tmp_path):
    answered = answer(
        tmp_path, "{{ CYLC_TEMPLATE_VARS | list | sort }} {{ CYLC_WORKFLOW_NAME }}", X=1
    )
    assert answered["lines"] == ["['CYLC_TEMPLATE_VARS', 'X'] w"]
