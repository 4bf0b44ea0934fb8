"""Event handlers of tasks and of the run: which commands, with which words, how often."""

import asyncio
import os
import re
from pathlib import Path
from subprocess import run

import pytest

from tests.kit.virtual_time import VirtualClock, in_virtual_time
from tidewheel.core.graph.definition import (
    NO_EVENTS,
    Events,
    Mail,
    NodeDef,
    RunMode,
    Simulation,
)
from tidewheel.core.graph.findings import Findings
from tidewheel.core.queue.task import Instant
from tidewheel.formats.flow_cylc.node_checks import handler_problem
from tidewheel.formats.flow_cylc.settings import WorkflowEvents, WorkflowMail, read_flow
from tidewheel.formats.flow_cylc.source_loader import SourceOptions
from tidewheel.runners.event_handlers import HandlerEnd
from tidewheel.scheduler.event_handlers import (
    EventHandlers,
    HandlerSettings,
    HandlerSurroundings,
)
from tidewheel.scheduler.handler_templates import (
    HandledNotice,
    HandledRun,
    TaskFacts,
    commands_for,
    filled,
)
from tidewheel.scheduler.mail import Mailer, MailSettings

RUN = HandledRun(name="flow/run1", uuid="u-1", owner="ada", meta=(("title", "The flow"),))
FINE = HandlerEnd(0, "")
BROKEN = HandlerEnd(3, "exit status 3", "no such host\n")


def node(**events):
    given = dict(events)
    return NodeDef(name="foo", events=Events(**given), meta=(("importance", "very high"),))


def facts(of=None, submit=1, **fields):
    return TaskFacts(node=of or node(), point="1", submit=submit, **fields)


class World:
    """Commands that are written down instead of run, and mails that are kept."""

    def __init__(self, directory=Path("/nowhere"), **settings):
        self.commands, self.reports, self.mails = [], [], []
        self.ends = []
        self.seconds = 0.0
        self.at_once = self.most_at_once = 0
        self.mode = settings.pop("mode", RunMode.LIVE)
        self.mail = settings.pop("mail", WorkflowMail())
        self.mail_settings = settings.pop("mail_settings", MailSettings())
        self.directory = directory
        self.settings = HandlerSettings(**settings)

    def handlers(self, **events):
        clock = VirtualClock()
        mailer = Mailer(
            RUN,
            self.mail,
            clock,
            self.mail_settings,
            send=self.send,
            on_report=self.reports.append,
        )
        around = HandlerSurroundings(
            run=RUN,
            directory=self.directory,
            environment={"A": "b"},
            clock=clock,
            mailer=mailer,
            mode=self.mode,
            on_report=self.reports.append,
            settings=self.settings,
            execute=self.execute,
        )
        return EventHandlers(WorkflowEvents(**events), around)

    async def execute(self, one):
        self.commands.append((asyncio.get_running_loop().time(), one.command))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.seconds)
        self.at_once -= 1
        end = self.ends.pop(0) if self.ends else FINE
        if isinstance(end, Exception):
            raise end
        return end

    def send(self, mail):
        if self.ends and isinstance(self.ends[0], Exception):
            raise self.ends.pop(0)
        self.mails.append((asyncio.get_running_loop().time(), mail))


# Which commands.


def test_a_command_for_one_event_goes_before_those_for_a_list():
    events = Events(
        handlers=(("", ("general",)), ("failed", ("one", "two"))),
        handled_events=("failed", "retry"),
    )
    assert commands_for("failed", events) == ("one", "two")
    assert commands_for("retry", events) == ("general",)
    assert commands_for("started", events) == ()


@in_virtual_time
async def test_nothing_is_wanted_of_events_that_nobody_handles():
    handlers = World().handlers(handlers=(("stall", ("x",)),), mail_events=("shutdown",))
    assert handlers.wants("stall")
    assert handlers.wants("shutdown")
    assert not handlers.wants("startup")
    assert not handlers.wants("failed", NodeDef(name="foo", events=NO_EVENTS))
    wanted = node(handlers=(("", ("x",)),), handled_events=("failed", "file1"))
    assert handlers.wants("failed", wanted)
    assert handlers.wants("file1", wanted)
    assert not handlers.wants("retry", wanted)
    assert not handlers.wants("failed", node(handled_events=("failed",)))


@in_virtual_time
async def test_a_simulated_task_has_no_handlers_unless_it_says_so():
    handlers = World(mode=RunMode.SIMULATION).handlers()
    events = Events(handlers=(("failed", ("x",)),))
    assert not handlers.wants("failed", NodeDef(name="foo", events=events))
    enabled = Simulation(handlers_disabled=False)
    assert handlers.wants("failed", NodeDef(name="foo", events=events, simulation=enabled))


# With which words.


def said_by(command, notice, directory=None):
    """What bash prints for a handler, as it is run."""
    made = filled(command, notice, RUN)
    done = run(
        ["bash", "-c", made.command],
        env={"PATH": os.environ["PATH"], "HOME": "/nowhere", **made.environment},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert not done.stderr, (made.command, done.stderr)
    return done.stdout.removesuffix("\n")


def test_a_command_without_fields_gets_the_facts_as_arguments():
    notice = HandledNotice(event="failed", message="it's  over", task=facts())
    assert said_by("printf '<%%s>' %(event)s %(id)s", notice) == "<failed><1/foo>"
    made = filled("tell", notice, RUN)
    assert made.shown == """tell 'failed' 'flow/run1' '1/foo' 'it'"'"'s  over'"""
    assert said_by('tell() { (IFS=,; echo "$*"); }; tell', notice) == (
        "failed,flow/run1,1/foo,it's  over"
    )
    of_run = HandledNotice(event="stall", message="m")
    assert filled("tell", of_run, RUN).shown == "tell 'stall' 'flow/run1' 'm'"
    assert said_by("echo", of_run) == "stall flow/run1 m"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("event", "failed"),
        ("workflow", "flow/run1"),
        ("suite", "flow/run1"),
        ("uuid", "u-1"),
        ("id", "1/foo"),
        ("point", "1"),
        ("name", "foo"),
        ("submit_num", "2"),
        ("try_num", "3"),
        ("message", "job; failed"),
        ("job_id", "77"),
        ("batch_sys_job_id", "77"),
        ("job_runner_name", "background"),
        ("submit_time", "1970-01-01T00:00:05Z"),
        ("start_time", "1970-01-01T00:00:07Z"),
        ("finish_time", "None"),
        ("platform_name", "localhost"),
        ("user@host", "localhost"),
        ("importance", "very high"),
        ("title", ""),
        ("workflow_title", "The flow"),
        ("workflow_url", ""),
    ],
)
def test_fields_are_filled_and_are_variables_as_well(field, text):
    task = facts(
        submit=2,
        try_number=3,
        job_id="77",
        submitted_at=Instant(5.0),
        started_at=Instant(7.0),
    )
    notice = HandledNotice(event="failed", message="job; failed", task=task)
    assert said_by(f"echo %({field})s 5%%", notice) == f"{text} 5%"
    variable = re.sub(r"\W", "_", field).upper()
    assert said_by(f'echo "$TIDEWHEEL_EVENT_{variable}" %(event)s', notice) == f"{text} failed"


def test_numbers_may_be_written_with_zeros():
    notice = HandledNotice(event="failed", task=facts(submit=2))
    assert said_by("echo %(submit_num)02d %(submit_num)s", notice) == "02 2"


HOSTILE = [
    "two  words",
    "$(touch struck)",
    "`touch struck`",
    "'; touch struck; '",
    '"; touch struck; "',
    "\"'; touch struck #",
    '\\"; touch struck; \\"',
    "a\ntouch struck",
    "${TIDEWHEEL_EVENT_ID}",
    "$'\\x27'",
    "*",
    "-n ~ \\",
    "!! & | > struck",
]
# What is written, and how the message comes out of it.
WRITTEN = [
    ("printf %%s %(message)s", "{}"),
    ("printf %%s a%(message)sb", "a{}b"),
    ('printf %%s "said: %(message)s, %(id)s"', "said: {}, 1/foo"),
    ("printf %%s 'said: %(message)s, %(id)s'", "said: {}, 1/foo"),
    ("printf %%s $'said: %(message)s\\041'", "said: {}!"),
    ('printf %%s "\\"%(message)s\\""', '"{}"'),
    ("printf %%s \\'%(message)s\\'", "'{}'"),
    ("printf %%s 'it'\"'\"'s: %(message)s'", "it's: {}"),
    ('printf %%s "$(printf %%s %(message)s)"', "{}"),
    ('printf %%s "$(printf %%s "[%(message)s]")"', "[{}]"),
    ("printf %%s \"$(printf %%s '[%(message)s]')\"", "[{}]"),
    ('printf %%s "`printf %%s %(message)s`"', "{}"),
    ("(true; printf %%s %(message)s) # don't", "{}"),
    ('bash -c "printf %%s %(message)s"', "{}"),
    ("bash -c 'printf %%s %(message)s'", "{}"),
    ("bash -c \"printf %%s '[%(message)s]'\"", "[{}]"),
    ("bash -c 'printf %%s \"[%(message)s]\"'", "[{}]"),
    ('bash -c "printf %%s \\"[%(message)s]\\""', "[{}]"),
    ("bash -c 'printf %%s \"$1\"' x %(message)s", "{}"),
    ("/bin/sh -ec 'printf %%s '%(message)s", "{}"),
    ("bash -eu -x -c 'printf %%s \"[%(message)s]\"' 2> /dev/null", "[{}]"),
    ("bash -c 'printf %%s \"$(printf %%s %(message)s)\"'", "{}"),
    ("bash -c \"printf %%s $'a%(message)sb'\"", None),
    ("bash -c \"printf %%s \\$'a%(message)sb'\"", "a{}b"),
    ("nice bash -c 'printf %%s %(message)s'", "{}"),
    ("if true; then printf %%s %(message)s; fi", "{}"),
    ('m=%(message)s; printf %%s "$m" 2>&1', "{}"),
    ("printf %%s %(message)s | cat", "{}"),
    ('[ "%(event)s" = failed ] && printf %%s "%(message)s" # bash', "{}"),
    ("timeout 10 printf %%s %(message)s", "{}"),
    ("printf %%s\\\n %(message)s", "{}"),
]


@pytest.mark.parametrize("message", HOSTILE)
@pytest.mark.parametrize(("command", "said"), WRITTEN, ids=lambda one: str(one)[:40])
def test_no_message_is_ever_read_as_a_command(tmp_path, command, said, message):
    """M5: however the author wrote quotes around the field."""
    notice = HandledNotice(event="failed", message=message, task=facts())
    if said is None:
        assert handler_problem(command, ["message"])
        return
    printed = said_by(command, notice, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert printed == said.format(message)


@pytest.mark.parametrize(
    "command",
    [
        # One option with a value, `--`, or another program hid what a shell reads.
        'bash -euo pipefail -c "echo got %(message)s"',
        'bash -o pipefail -c "echo %(message)s"',
        'bash -c -- "echo %(message)s"',
        'bash -c -e "echo %(message)s"',
        'bash --norc -c "echo %(message)s"',
        'bash -O extglob -c "echo %(message)s"',
        '$SHELL -c "echo %(message)s"',
        '"${SHELL}" -c "echo %(message)s"',
        '`which bash` -c "echo %(message)s"',
        '$(which bash) -c "echo %(message)s"',
        "$'\\x62ash' -c 'echo %(message)s'",
        'b""ash -o pipefail -c "echo %(message)s"',
        'ba\\\nsh -o pipefail -c "echo %(message)s"',
        '{bash,-o,pipefail,-c,"echo %(message)s"}',
        '/bin/b?sh -c "echo %(message)s"',
        'nice -n 5 bash -c "echo %(message)s"',
        'nice $SHELL -c "echo %(message)s"',
        'wrap $X -c "echo %(message)s"',
        'wrap bash -o pipefail -c "echo %(message)s"',
        "env -S \"bash -c 'echo %(message)s'\"",
        'flock F -c "echo %(message)s"',
        'watch "echo %(message)s"',
        'xargs -I x sh -c "echo %(message)s"',
        'sudo sh -c "echo %(message)s"',
        'su -c "echo %(message)s"',
        'bash <<< "echo %(message)s"',
        "tell <<< %(message)s",
        'echo "echo %(message)s" | bash',
        'echo "%(message)s" | bash -s',
        'echo "%(message)s" | bash /dev/stdin',
        'echo "%(message)s" | { cat; bash; }',
        'trap "echo %(message)s" EXIT',
        ". <(echo %(message)s)",
        "source <(echo %(message)s)",
        "bash <(echo %(message)s)",
        "echo $((%(message)s))",
        "echo $[%(message)s]",
        "((x = %(message)s))",
        "let x=%(message)s",
        "[[ %(message)s -eq 1 ]]",
        "[[ a && 1 -eq %(message)s && b ]]",
        "declare a[%(message)s]=1",
        "a[%(message)s]=1",
        "echo ${x:%(message)s}",
        "printf -v %(message)s x",
        "echo >& %(message)s",
        'x=%(message)s; echo >&"$x"',
        "x=%(message)s; echo ${a[x]}",
        "x=%(message)s; echo ${y:x}",
        "x=%(message)s; echo ${!x}",
        "x=%(message)s; echo ${x@P}",
        "SECONDS=%(message)s tell",
        "eval echo %(message)s",
        "builtin eval echo %(message)s",
        "ssh host echo %(message)s",
        "x=%(message)s; eval $x",
        "x=%(message)s; $x",
        'x=%(message)s; bash -c "$x"',
        "bash -c 'eval \"$1\"' x %(message)s",
        "bash -c '\"$@\"' x %(message)s",
        "bash -c 'echo $(($1))' x %(message)s",
        'bash -c "echo $X %(message)s"',
        "bash -c %(message)s",
        'echo `bash -c "echo %(message)s"`',
        'echo `echo \\`bash -o x -c "echo %(message)s"\\``',
        '"$(case x in x) bash -o pipefail -c "echo %(message)s";; esac)"',
        "%(message)s",
        "nice %(message)s",
        "bin/%(message)s.sh",
        "true && %(message)s",
        ">| file %(message)s",
        "&> file %(message)s",
        "PATH=%(message)s tell",
        "BASH_ENV=%(message)s bash -c 'tell'",
        "echo \\%(message)s",
        "echo $%(message)s",
        "echo 'open %(message)s",
        "find . -exec sh -c 'echo %(message)s' x",
        "find . -name %(message)s",
        "sed 's/x/%(message)s/'",
        "make X=%(message)s",
        "python3 -W ignore -c 'print(\"%(message)s\")'",
        "python3 -c 'print(1)' %(message)s",
        "echo 'print(\"%(message)s\")' | python3",
        "my-tool --command %(message)s",
        "python3 -c 'print(\"%(message)s\")'",
        'perl -we "print q(%(message)s)"',
        "awk -v x=1 'BEGIN { print \"%(message)s\" }'",
        "cat << EOF\n%(message)s\nEOF",
        "bash -c \"bash -c 'echo %(message)s'\"",
        "ssh host \"bash -c 'echo %(message)s'\"",
    ],
)
def test_a_field_that_something_else_would_read_is_refused(command):
    notice = HandledNotice(event="failed", message="m", task=facts())
    with pytest.raises(ValueError, match="message"):
        filled(command, notice, RUN)
    assert handler_problem(command, ["message"])


@pytest.mark.parametrize(
    "command",
    [
        'python3 tell.py -c "%(message)s"',
        'bash tell.sh -c "%(message)s"',
        "perl ./tell.pl '%(message)s'",
        "my-script %(message)s %(message)s '%(message)s'",
        'mail -s "%(message)s" -c boss@example.org x',
        'echo "%(message)s" | mail -s "bash failed" x >> "$HOME/told" 2>&1 &',
        '"$HOME/bin/tell" %(message)s',
        '~/bin/tell "$USER: %(message)s" ${HOST:-here}',
        "env A=1 tell %(message)s",
        "echo 100%% %(message)s; exit 1",
        "tell %(message)s || echo no >&2",
    ],
)
def test_an_argument_of_a_program_is_a_field_like_any_other(command):
    assert handler_problem(command, ["message"]) == ""


def test_a_refused_field_says_what_to_do():
    problem = handler_problem("ssh host tell '%(message)s'", ["message"])
    assert "ssh may run its arguments or its input as commands" in problem
    assert "let a script read the variable TIDEWHEEL_EVENT_MESSAGE" in problem


def test_a_command_to_which_no_argument_can_be_given_safely_has_the_variables(tmp_path):
    notice = HandledNotice(event="failed", message="$(touch struck)", task=facts())
    command = 'bash -o pipefail -c "echo \\"it: \\$TIDEWHEEL_EVENT_MESSAGE\\""'
    made = filled(command, notice, RUN)
    assert (made.command, made.shown) == (command, command)
    assert said_by(command, notice, tmp_path) == "it: $(touch struck)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("letter", ["'", "\u20ac", "x"])
def test_a_message_that_is_too_long_for_a_variable_is_cut_and_its_handler_called(letter):
    notice = HandledNotice(event="failed", message=letter * 65_536, task=facts())
    for command in (
        "/usr/bin/printf %%s %(message)s",
        "bash -c '/usr/bin/printf %%s %(message)s'",
    ):
        printed = said_by(command, notice)
        assert printed.endswith(f"{letter} … (cut)")
        assert 59_000 < len(printed.encode()) <= 60_000
    exact = HandledNotice(event="failed", message="x" * 60_000, task=facts())
    assert said_by("printf %%s %(message)s", exact) == "x" * 60_000


def validated(folder, events):
    findings = Findings()
    text = f"{events}[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n"
    (folder / "flow.cylc").write_text(text)
    read_flow(folder, SourceOptions(), findings)
    return [(one.severity.name, one.code, one.message) for one in findings]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ssh host 'tell %(message)s'", ("ERROR", "bad-handler", "ssh may run")),
        ("tell %(id)s", ("ERROR", "bad-handler", "%(id)s is not known")),
        ("ssh host tell", ("WARNING", "handler-arguments", "without arguments")),
        ("tell 'it: %(message)s'", ("NOTE", "handler-quotes", "%(message)s within quotes")),
        ('tell "$(date) %(message)s"', ("NOTE", "handler-quotes", "%(message)s within quotes")),
        ("tell '' `date %(event)s`", ("NOTE", "handler-quotes", "%(event)s within quotes")),
    ],
)
def test_handlers_of_the_run_are_checked_before_it_begins(tmp_path, command, expected):
    [(severity, code, message)] = validated(
        tmp_path, f"[scheduler]\n[[events]]\nstall handlers = {command}\n"
    )
    assert (severity, code) == expected[:2]
    assert expected[2] in message and "[scheduler][events]" in message


def test_handlers_of_the_run_may_show_its_own_facts(tmp_path):
    command = "tell %(workflow)s %(owner)s %(host)s %(colour)s %(workflow_colour)s"
    meta = "[meta]\ncolour = red\n"
    assert (
        validated(tmp_path, f"{meta}[scheduler]\n[[events]]\nstall handlers = {command}\n")
        == []
    )


def test_a_field_that_is_not_known_cannot_be_filled():
    with pytest.raises(ValueError, match="cannot be filled"):
        filled("tell %(nonsense)s", HandledNotice(event="failed", task=facts()), RUN)


# How often.


@in_virtual_time
async def test_an_event_of_a_job_is_handled_once():
    world = World()
    handlers = world.handlers()
    failing = node(handlers=(("failed", ("one", "two")), ("warning", ("w",))))
    for _ in range(2):
        handlers.notice(HandledNotice(event="failed", task=facts(failing)))
        handlers.notice(HandledNotice(event="warning", message="w", task=facts(failing)))
    handlers.notice(HandledNotice(event="failed", task=facts(failing, submit=2)))
    await handlers.drain(5)
    names = [command.split()[0] for _, command in world.commands]
    assert sorted(names) == ["one", "one", "two", "two", "w", "w"]


@in_virtual_time
async def test_a_failed_handler_is_tried_again_after_its_delays_and_reported():
    """The first delay is one before the first try, as in Cylc."""
    world = World()
    world.ends = [BROKEN, BROKEN, BROKEN]
    handlers = world.handlers()
    failing = node(handlers=(("failed", ("x",)),), handler_retry_delays=(1.0, 10.0, 20.0))
    handlers.notice(HandledNotice(event="failed", task=facts(failing)))
    await handlers.drain(100)
    assert [at for at, _ in world.commands] == [1, 11, 31]
    assert [one.event for one in world.reports] == ["handler.failed"] * 3
    assert world.reports[0].facts["error"] == "exit status 3"
    assert world.reports[0].facts["id"] == "1/foo/01"


@in_virtual_time
async def test_whoever_waits_for_a_handler_is_told_also_when_it_breaks_or_is_dropped():
    """The event of one that is dropped is kept for later."""
    world, done = World(queued_max=2), []
    world.ends = [RuntimeError("planted")]
    handlers = world.handlers(handlers=(("stall", ("a",)), ("shutdown", ("b", "c"))))
    handlers.notice(HandledNotice(event="stall"), lambda is_told: done.append(("a", is_told)))
    handlers.notice(HandledNotice(event="shutdown"), lambda told: done.append(("b", told)))
    await asyncio.sleep(1)
    assert sorted(done) == [("a", True), ("b", False)]
    assert {one.event for one in world.reports} == {"handler.failed", "handler.dropped"}
    assert any("planted" in str(one.facts.get("error")) for one in world.reports)


@in_virtual_time
async def test_whoever_waits_for_mail_is_told_also_when_it_breaks_or_is_dropped():
    world, done = World(mail_settings=MailSettings(waiting_max=1)), []
    world.ends = [RuntimeError("planted")]
    handlers = world.handlers()
    mailed = node(mail_events=("failed",))
    for submit in (1, 2):
        notice = HandledNotice(event="failed", task=facts(mailed, submit=submit))
        handlers.notice(notice, lambda is_told, n=submit: done.append((n, is_told)))
    await asyncio.sleep(100)
    assert sorted(done) == [(1, True), (2, False)]
    assert {one.event for one in world.reports} == {"mail.failed", "mail.dropped"}


@in_virtual_time
async def test_no_more_handlers_run_at_once_than_the_limit():
    world = World(at_once_max=2)
    world.seconds = 1
    handlers = world.handlers(handlers=(("stall", tuple("abcdef")),))
    handlers.notice(HandledNotice(event="stall"))
    await handlers.drain(100)
    assert len(world.commands) == 6
    assert world.most_at_once == 2


@in_virtual_time
async def test_the_end_of_a_run_waits_for_handlers_but_not_for_ever():
    world = World()
    world.seconds = 1000
    handlers = world.handlers(handlers=(("shutdown", ("x",)),))
    handlers.notice(HandledNotice(event="shutdown"))
    await handlers.drain(5)
    assert asyncio.get_running_loop().time() == 5
    assert [one.event for one in world.reports] == ["handler.dropped"]


@in_virtual_time
async def test_what_a_handler_did_is_logged_beside_its_job(tmp_path):
    job = tmp_path / "log" / "job" / "1" / "foo" / "01"
    job.mkdir(parents=True)
    world = World(tmp_path)
    world.ends = [BROKEN]
    handlers = world.handlers(handlers=(("stall", ("help",)),))
    failing = node(handlers=(("failed", ("tell %(id)s",)),))
    handlers.notice(HandledNotice(event="failed", task=facts(failing)))
    await asyncio.sleep(1)
    handlers.notice(HandledNotice(event="stall", message="stuck"))
    await handlers.drain(5)
    assert (job / "job-activity.log").read_text() == (
        "[(event-handler-00, failed) cmd] tell 1/foo\n"
        "[(event-handler-00, failed) ret_code] 3\n"
        "[(event-handler-00, failed) failed] exit status 3\n"
        "[(event-handler-00, failed) out] no such host\n"
    )
    of_run = tmp_path / "log" / "scheduler" / "handlers" / "activity.log"
    assert "help 'stall' 'flow/run1' 'stuck'" in of_run.read_text()


# Mail.


def mailed(*events, **fields):
    return NodeDef(name="foo", events=Events(mail_events=events), **fields)


@in_virtual_time
async def test_events_that_come_together_go_into_one_mail():
    world = World(mail=WorkflowMail(to="ops@example.org", footer="see %(workflow)s"))
    handlers = world.handlers()
    of = mailed("failed", "retry")
    for submit in (1, 2):
        handlers.notice(HandledNotice(event="failed", message="m", task=facts(of, submit)))
    await asyncio.sleep(2)
    handlers.notice(HandledNotice(event="retry", task=facts(of, 3)))
    handlers.notice(HandledNotice(event="failed", task=facts(of, 3)))
    await asyncio.sleep(400)
    (first_at, first), (second_at, second) = world.mails
    assert (first_at, second_at) == (1, 301)
    assert first["Subject"] == "[2 tasks failed] flow/run1"
    assert first["To"] == "ops@example.org"
    assert first["From"] == "notifications@localhost"
    assert "job: 1/foo/02\nevent: failed\nmessage: m\n" in first.get_content()
    assert "see flow/run1" in first.get_content()
    assert second["Subject"] == "[2 task events] flow/run1"


@in_virtual_time
async def test_mail_goes_where_the_node_says():
    world = World()
    handlers = world.handlers()
    of = mailed("failed", mail=Mail(sender="me@here", to="you@there"))
    handlers.notice(HandledNotice(event="failed", message="two\nlines", task=facts(of)))
    await handlers.drain(5)
    ((_, mail),) = world.mails
    assert (mail["From"], mail["To"]) == ("me@here", "you@there")
    assert mail["Subject"] == "[1/foo/01 failed] flow/run1"


@in_virtual_time
async def test_events_of_the_run_are_mailed_at_once():
    world = World()
    handlers = world.handlers(mail_events=("startup", "stall"))
    handlers.notice(HandledNotice(event="startup"))
    handlers.notice(HandledNotice(event="stall", message="nothing can run"))
    await asyncio.sleep(0.5)
    assert [mail["Subject"] for _, mail in world.mails] == [
        "[workflow startup] flow/run1",
        "[workflow stall] flow/run1",
    ]
    assert "message: nothing can run" in world.mails[1][1].get_content()


@in_virtual_time
async def test_a_mail_that_no_server_takes_is_tried_again_and_then_given_up():
    world = World()
    world.ends = [OSError("refused")] * 4
    handlers = world.handlers(mail_events=("startup",))
    handlers.notice(HandledNotice(event="startup"))
    await asyncio.sleep(100)
    assert [one.event for one in world.reports] == ["mail.failed"]
    handlers.notice(HandledNotice(event="startup"))
    await asyncio.sleep(100)
    assert [at for at, _ in world.mails] == [110]


@in_virtual_time
async def test_a_mail_that_cannot_be_written_is_reported():
    world = World()
    handlers = world.handlers(mail_events=("stall",))
    handlers.notice(HandledNotice(event="stall", message="\ud800"))
    await handlers.drain(5)
    assert [one.event for one in world.reports] == ["mail.failed"]


@in_virtual_time
async def test_the_end_of_a_run_sends_what_waits_and_does_not_wait_for_a_dead_server():
    world = World()
    world.ends = [OSError("refused")]
    handlers = world.handlers(mail_events=("startup",))
    handlers.notice(HandledNotice(event="startup"))
    await asyncio.sleep(1)
    handlers.notice(HandledNotice(event="failed", task=facts(mailed("failed"))))
    await handlers.drain(30)
    assert asyncio.get_running_loop().time() == 1
    assert [one.event for one in world.reports] == ["mail.failed", "mail.sent"]


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("localhost", ("localhost", 25)),
        ("mail.x:2525", ("mail.x", 2525)),
        (":26", ("localhost", 26)),
    ],
)
def test_a_mail_server_is_a_host_and_a_port(text, server):
    assert MailSettings(smtp=text).server() == server
