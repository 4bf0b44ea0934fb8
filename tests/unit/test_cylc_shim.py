"""Calls of Cylc as commands of a run: what existing scripts write, and what is meant by it."""

import pytest

from tidewheel.cli.cylc.arguments import BadUsage, read_arguments
from tidewheel.cli.cylc.cycle_point import OPTIONS, cycle_point, moved
from tidewheel.cli.cylc.message import marked
from tidewheel.cli.cylc.program import VERBS, main
from tidewheel.core.operator.verbs import (
    Broadcast,
    ExtTrigger,
    Hold,
    Kill,
    Pause,
    Poll,
    Release,
    Reload,
    Remove,
    Resume,
    Set,
    Stop,
    Trigger,
)


def meant(verb, *words):
    return VERBS[verb].command(read_arguments(verb, VERBS[verb].options, words))


@pytest.mark.parametrize(
    ("call", "command"),
    [
        ("trigger w//1/foo", Trigger(ids=("1/foo",))),
        ("trigger --flow=new --meta=x w//1/foo", Trigger(ids=("1/foo",), flow="new")),
        (
            "trigger --flow=2 --flow=3 --wait w//1/f",
            Trigger(ids=("1/f",), flow="2,3", wait=True),
        ),
        ("trigger w// //1/a //1/b", Trigger(ids=("1/a", "1/b"))),
        ("trigger w//1/fix*:failed", Trigger(ids=("1/fix*:failed",))),
        ("set w//2/a --out=y,succeeded", Set(ids=("2/a",), outputs=("y", "succeeded"))),
        ("set -o a -o b --wait w//1/foo", Set(ids=("1/foo",), outputs=("a", "b"), wait=True)),
        ("set --pre=all w//1/a", Set(ids=("1/a",), prerequisites=("all",))),
        ("set --pre=1/a:x,1/b w//1/c", Set(ids=("1/c",), prerequisites=("1/a:x", "1/b"))),
        ("remove w//1/bar", Remove(ids=("1/bar",), kill=True)),
        ("remove --flow=1 w//1/bar", Remove(ids=("1/bar",), flow="1", kill=True)),
        ("hold w//1/a", Hold(ids=("1/a",))),
        ("hold --after 20140101T12 w", Hold(after="20140101T12")),
        ("release w//1/a", Release(ids=("1/a",))),
        ("release --all w", Release(everything=True)),
        ("kill w//*/t1", Kill(ids=("*/t1",))),
        ("kill w//*", Kill(ids=("*",))),
        ("kill w a.1", Kill(ids=("a.1",))),
        ("poll w//*/a", Poll(ids=("*/a",))),
        ("pause w", Pause()),
        ("play w", Resume()),
        ("reload w", Reload()),
        ("stop w", Stop()),
        ("stop --now w", Stop(mode="now")),
        ("stop --now --now w", Stop(mode="now")),
        ("stop -k w", Stop(mode="kill")),
        ("stop --flow=1 w", Stop(flow=1)),
        ("stop w//3", Stop(at_point="3")),
        ("stop w//3/a", Stop(after_task="3/a")),
        ("stop w 20100101T06/a", Stop(after_task="20100101T06/a")),
        ("stop --wall-clock=20300101T00Z w", Stop(at_time="20300101T00Z")),
        ("ext-trigger w hello id1", ExtTrigger(message="hello", trigger_id="id1")),
        ("broadcast -s [environment]X=1 w", Broadcast(settings=("[environment]X=1",))),
        (
            "broadcast -s script=x -n F -n G -p 1 w",
            Broadcast(points=("1",), namespaces=("F", "G"), settings=("script=x",)),
        ),
        ("broadcast -c [environment]X w", Broadcast(cancel=("[environment]X",))),
        ("broadcast --clear w", Broadcast(clear=True)),
        ("broadcast -C -p 1 w", Broadcast(clear=True, points=("1",))),
        ("broadcast --expire 3 w", Broadcast(expire="3")),
    ],
)
def test_a_call_means_one_command(call, command):
    verb, *words = call.split(" ")
    assert meant(verb, *words) == ("w", command)


def test_a_workflow_may_have_slashes_and_a_user():
    assert meant("pause", "~me/flows/tide/run1")[0] == "flows/tide/run1"
    assert meant("kill", "~me/a/b//1/x") == ("a/b", Kill(ids=("1/x",)))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("trigger w", "which tasks"),
        ("trigger w//1/a x//1/b", "several workflows"),
        ("stop --flow=x w", "takes a number"),
        ("broadcast w", "nothing to do"),
        ("trigger --floww=1 w//1/a", "--flow"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(call, said):
    verb, *words = call.split(" ")
    with pytest.raises(BadUsage, match=said):
        meant(verb, *words)


def test_settings_come_from_files_too(tmp_path):
    file = tmp_path / "settings.cylc"
    file.write_text(
        'script = """\n  echo a\n  echo b\n"""\n[environment]\n  # none\n  X = 1\n'
        "[events]\n  failed handlers = mail\n"
    )
    assert meant("broadcast", "-F", str(file), "w")[1].settings == (
        'script="""\n  echo a\n  echo b\n"""',
        "[environment]X=1",
        "[events]failed handlers=mail",
    )


@pytest.mark.parametrize(
    ("text", "severity", "result"),
    [
        ("it is done", "", "it is done"),
        ("it is done", "INFO", "it is done"),
        ("it is done", "WARNING", "WARNING:it is done"),
        ("CUSTOM: hot", "", "CUSTOM:hot"),
        ("critical:hot", "WARNING", "CRITICAL:hot"),
        ("INFO:x", "WARNING", "x"),
        ("file:a", "", "file:a"),
    ],
)
def test_a_message_keeps_its_severity(text, severity, result):
    assert marked(text, severity) == result


def printed(*words):
    return cycle_point(read_arguments("cycle-point", OPTIONS, words))[0]


def test_points_can_be_counted_with():
    assert moved("3", "-P2") == "1"
    assert moved("20100102T0000Z", "P1D") == "20100103T0000Z"
    assert moved("20100102T0000Z", "-P1M") == "20091202T0000Z"
    assert printed("20100102T1200Z", "--print-hour") == "12"
    assert printed("20100102T1200Z", "--print-year") == "2010"
    assert printed("20100102T1200Z", "--offset-hours=-6") == "20100102T0600Z"
    assert printed("20100102T12Z", "--template=foo-CCYY-MM-DD-hh.nc") == "foo-2010-01-02-hh.nc"


def test_a_point_of_the_environment_is_meant_where_none_is_named(monkeypatch):
    monkeypatch.setenv("CYLC_TASK_CYCLE_POINT", "20110101T1200Z")
    assert printed("--print-hour") == "12"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--version"], 0),
        (["version"], 0),
        ([], 2),
        (["install", "x"], 2),
        (["trigger", "--x"], 2),
    ],
)
def test_the_exit_status_tells_whether_the_words_made_sense(words, status, capsys):
    assert main(words) == status
    said = capsys.readouterr()
    assert said.out if status == 0 else said.err
