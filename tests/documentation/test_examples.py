"""Every command and example of the documentation is tried, page by page, as it stands there."""

import re
import shutil
import sys

import click
import pytest

from tests.support.shell_session import ShellSession, is_shown
from tests.support.written_examples import LANGUAGES, PAGES, ROOT, blocks_of
from tidewheel.cli.main import cli

BLOCKS = {page: blocks_of(page) for page in PAGES}
TRIED = [page for page in PAGES if any(block.is_tried for block in BLOCKS[page])]
DATABASE = "postgresql://tide@db.example.org/tide"
SERVERS = ("https://tide.example.org", "https://other.example.org")


@pytest.fixture
def session(tmp_path, request):
    """An empty home; the names of machines in the pages stand for real parts."""
    names = dict.fromkeys(SERVERS, "http://127.0.0.1:8450")
    text = request.node.callspec.params["page"].read_text(encoding="utf-8")
    if DATABASE in text:
        names[DATABASE] = request.getfixturevalue("postgres_url")
    shell = ShellSession(tmp_path, names)
    if "examples/" in text:  # of the repository, which the reader has at hand
        shutil.copytree(ROOT / "examples", shell.home / "examples")
    yield shell
    shell.close()


@pytest.mark.parametrize("page", TRIED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(page, session):
    for block in BLOCKS[page]:
        if not block.is_tried:
            continue
        if block.title is not None:
            session.write(block.title, block.text)
        elif block.language == "python":
            session.write("example.py", block.text)
            status, said = session.type(f"{sys.executable} example.py")
            assert status == 0, f"{block.place}: {said}"
        else:
            follow(session, block)


def follow(session, block):
    """Types the commands of a block."""
    commands = block.commands()
    for number, command in enumerate(commands, 1):
        last = number == len(commands)
        if last and block.directive == "stays":
            said = session.start(command.line, command.answer)
        else:
            status, said = session.type(command.line)
            wanted = block.exit_status if last else 0
            assert status == wanted, f"{block.place}: $ {command.line}: {status}\n{said}"
        assert not command.answer or session.is_shown(command.answer, said), (
            f"{block.place}: $ {command.line}\nthe page shows:\n"
            + "\n".join(command.answer)
            + f"\nit said:\n{said}"
        )


def test_every_block_says_what_it_is():
    """A command cannot hide in a block that nobody tries."""
    wrong = [
        f"{block.place}: {line}"
        for blocks in BLOCKS.values()
        for block in blocks
        for line in block.lines
        if block.language != "console" and line.startswith(("$ ", "tidewheel "))
    ]
    nameless = [
        f"{block.place}: ```{block.language}"
        for blocks in BLOCKS.values()
        for block in blocks
        if block.language not in LANGUAGES
    ]
    assert wrong + nameless == []


def test_what_is_tried_elsewhere_names_tests_that_are_there(record_property):
    """The list of what these tests leave to others, or to readers."""
    elsewhere = [block for blocks in BLOCKS.values() for block in blocks if block.elsewhere]
    assert [block.place for block in elsewhere if not (ROOT / block.elsewhere).exists()] == []
    read_only = [
        block
        for blocks in BLOCKS.values()
        for block in blocks
        if block.language not in ("text", "json") and not block.is_tried
    ]
    for block in read_only:
        record_property("left out", f"{block.place}: {block.directive}")
    shown = {block.directive for block in read_only}
    assert all(words.startswith(("by ", "read only: ")) for words in shown)


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (["a in 3ms"], "a in 1.2s\n"),
        (
            ["id 01a1de84-6b46-73b0-bbbb-82c5d276ba47"],
            "id 11a1de84-6b46-73b0-bbbb-82c5d276ba48",
        ),
        (["first", "…", "last"], "first\nmore\nmore\nlast\n"),
        (["first", "…", "last"], "first\nlast\n"),
        (["a … c"], "a b c"),
    ],
)
def test_times_and_ids_and_what_is_left_out_may_differ(expected, said):
    assert is_shown(tuple(expected), said)


@pytest.mark.parametrize(
    ("expected", "said"),
    [(["succeeded"], "failed"), (["a"], "a\nb"), (["a", "b"], "a"), (["3 tasks"], "4 tasks")],
)
def test_anything_else_may_not(expected, said):
    assert not is_shown(tuple(expected), said)


INLINE = re.compile(r"`(?:\$ )?tidewheel ([^`\n]+)`")
IN_THEIR_PLACE = {"…", "NAME", "COMMAND", "VERB"}


def wrong_words(line):
    """What of a command within a sentence the program does not know."""
    words = line.partition(" -- ")[0].split()
    if words[0].startswith("-") or words[0] in IN_THEIR_PLACE:
        return []
    try:
        command = cli.get_command(click.Context(cli), words[0])
    except click.UsageError:
        return [words[0]]
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    known |= {"--help", "--json"}
    if isinstance(command, click.Group):
        verb = next((word for word in words[1:] if word in command.commands), None)
        if verb is not None:
            params = command.commands[verb].params
            known |= {option for one in params for option in (*one.opts, *one.secondary_opts)}
    given = [word.partition("=")[0].rstrip(",;:.)") for word in words[1:]]
    return [word for word in given if word.startswith("--") and word not in known]


def test_commands_within_sentences_and_tables_exist_with_their_options():
    wrong = [
        f"{page.relative_to(ROOT)}: tidewheel {line}: {', '.join(words)}"
        for page in PAGES
        for line in INLINE.findall(page.read_text(encoding="utf-8"))
        if (words := wrong_words(line))
    ]
    assert wrong == []


@pytest.mark.parametrize("line", ["runn DIR", "run DIR --nwe", "token create x --scop read"])
def test_a_command_that_does_not_exist_is_found(line):
    assert wrong_words(line)
