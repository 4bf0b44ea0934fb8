"""What bash cannot read in a script, with the script's own line."""

import pytest

from tidewheel.runners.shell.bash_syntax import bash_syntax_problem


@pytest.mark.parametrize(
    ("script", "line", "words"),
    [
        ("echo 1\necho 2)\necho 3\n", 2, "unexpected token `)'"),
        ("for one in a b; do\n  echo $one\n", 2, "unexpected end of file"),
        ("true\ncat <<END\ntext\n", 2, "here-document is delimited by end-of-file"),
        ("fi", 1, "unexpected token `fi'"),
    ],
)
def test_the_first_mistake_is_told_with_its_line(script, line, words):
    problem = bash_syntax_problem(script)
    assert (problem.line, words in problem.words) == (line, True)


@pytest.mark.parametrize("script", ["", "# nothing\n", "exit 3\n", "no-such-program 'ü'\n"])
def test_what_bash_can_read_has_no_problem_whatever_it_does(script):
    assert bash_syntax_problem(script) is None


def test_nothing_of_a_script_is_executed(tmp_path):
    made = tmp_path / "made"
    assert bash_syntax_problem(f"touch {made}\necho $(touch {made})\nfi\n").line == 3
    assert not made.exists()


def test_a_machine_without_bash_finds_no_problem(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bash_syntax_problem("fi\n") is None
