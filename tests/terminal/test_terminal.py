"""`tidewheel tui` in a real terminal, on real runs: what is seen, and what is done."""

import json
import os
import signal
from contextlib import ExitStack

from tests.support.http_server import running_server
from tests.support.patience import eventually_told
from tests.support.prepared_run import PreparedRun
from tests.support.terminal_session import on_terminal


def half_done(tidewheel):
    """1/model_a failed and is handled, so 1/post is lost and 2/prep is blocked."""
    run = PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")
    return run.starts_job("1/model_b")


def test_a_run_is_a_tree_with_states_in_words_shapes_and_colours(tidewheel):
    half_done(tidewheel)
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("forecast/run1  ▶ running")
        tui.sees_line("▾ MODELS").sees_line("model_a", "✖ failed")
        tui.sees_line("model_b", "▶ running").sees(
            "2  ░░░░░░░░ 0/5 done  1 waiting", "○ waiting  blocked"
        )
        tui.sees_styles("31", "34", "32")  # red, blue, green
        assert tui.press("q").ends() == 0
        tui.is_given_back()


def test_without_colour_and_without_unicode_everything_is_still_said(tidewheel):
    half_done(tidewheel)
    plain = {"NO_COLOR": "1", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    with on_terminal(tidewheel, "tui", "forecast", **plain) as tui:
        tui.sees_line("model_a", "x failed").sees_line("model_b", "> running")
        assert tui.screen.styles <= {"1", "7"}
        assert tui.screen.text.isascii()


def test_the_tree_follows_what_happens(tidewheel):
    run = half_done(tidewheel)
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees_line("model_b", "running")
        run.happens()
        run.fails("1/mail")
        tui.sees("mail  ✖ failed")


def test_a_task_tells_why_what_it_waits_for_and_what_it_made(tidewheel):
    half_done(tidewheel)
    with on_terminal(tidewheel, "tui", "forecast", size=(80, 40)) as tui:
        tui.sees("model_b").press("down", "enter")
        tui.sees("task 1/prep", "Get everything ready", "outputs (+ made", "+ succeeded")
        tui.sees("submissions and attempts", "attempt 1  succeed", "children").press(
            "esc"
        ).sees("MODELS")
        tui.press("end", "enter").sees("task 2/prep", "why it does not run")
        tui.sees("prerequisites", "x 1/post", "needs action")
        tui.sees("tidewheel trigger forecast/run1 1/model_a")


def test_wide_terminals_have_the_task_beside_the_tree(tidewheel):
    half_done(tidewheel)
    with on_terminal(tidewheel, "tui", "forecast", size=(80, 24)) as tui:
        tui.sees("model_b").press("down", "enter").sees("task 1/prep").sees_no("MODELS")
        tui.resize(140, 30).sees("task 1/prep", "MODELS", "│")
        tui.resize(30, 8).sees("task 1/prep").resize(80, 24).sees("task 1/prep")


def test_branches_open_and_close_and_submissions_are_below_their_task(tidewheel):
    half_done(tidewheel)
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("model_b").press("down", "right").sees("01  ✔ succeeded")
        tui.press("left").sees_no("01  ✔")
        tui.press("home", "left").sees("▸ 1").sees_no("model_b")


def test_what_is_looked_for_is_found_by_name_glob_and_state(tidewheel):
    half_done(tidewheel)
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("model_b").press("/", "model").sees_no(" prep ").sees("model_a", "model_b")
        tui.press(":fail").sees_no("model_b").sees("model_a").press("enter")
        tui.sees("[/model:fail]").press("esc").sees(" prep ")
        tui.press("/", "*/nix").sees("no task matches").press("esc").sees("model_b")
        tui.press("tab").sees("[pool]").sees_no("model_a").sees("model_b", " prep ")


def test_an_action_shows_what_it_would_do_and_does_it_only_when_told_so(tidewheel):
    run = half_done(tidewheel)
    with run.answering() as heard, on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("model_b").press("end", "H")
        tui.sees(
            "Keep tasks from running", "tidewheel hold forecast/run1 2/prep", "hold 2/prep?"
        )
        tui.press("n").sees("hold: nothing was done")
        assert heard == []
        tui.press("H").sees("hold 2/prep?").press("y").sees("2/prep is held", "blocked, held")
        assert [json.loads(one)["verb"] for one in heard] == ["hold"]
        tui.press("R").sees("release 2/prep?").press("y").sees("2/prep is released")
        tui.press("P").sees("pause?").press("y").sees("‖ paused")
        tui.press("U").sees("resume?").press("y").sees_no("‖ paused")


def test_marked_tasks_are_acted_on_together(tidewheel):
    run = half_done(tidewheel)
    with run.answering() as heard, on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("model_b").press("/", "model").sees_no(" prep ").press("enter")
        tui.press("end", " ", "up", " ").sees("[2 marked]").press("s")
        tui.sees("set 1/model_a 1/model_b?").press("y").sees(
            "1/model_b was set", "now runs: 1/post"
        )
        [command] = map(json.loads, heard)
        assert command["ids"] == ["1/model_a", "1/model_b"]


def test_what_is_refused_is_said_and_nothing_else_happens(tidewheel):
    half_done(tidewheel).is_let_go()
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("model_b").press("down", "K").sees("command would be refused", "kill 1/prep?")
        tui.press("y").sees("forecast/run1", "its scheduler is gone; resume it")
        assert tui.press("q").ends() == 0


def test_the_log_of_a_job_is_followed_and_shown_safely(tidewheel):
    run = half_done(tidewheel)
    run.writes_log("1/model_b", "job.out", "".join(f"line {n}\n" for n in range(100)))
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("model_b").press("/", "model_b", "enter", "end", "o")
        tui.sees("out of 1/model_b", "follows", "line 99").sees_no("line 10\n")
        text = "".join(f"line {n}\n" for n in range(100)) + "\x1b[31mhostile\x1b]0;x\x07 more\n"
        run.writes_log("1/model_b", "job.out", text)
        tui.sees("\\x1b[31mhostile")
        tui.press("home").sees("line 0").sees_no("hostile").press("f").sees("hostile")
        tui.press("esc").sees("MODELS")
        tui.press("e").sees("err of 1/model_b")


def test_hostile_names_stay_words(tidewheel):
    """S12: what users write moves no cursor."""
    flow = (
        "[scheduling]\n  [[graph]]\n    R1 = a\n[runtime]\n  [[a]]\n"
        '    [[[meta]]]\n      title = """\x1b[2J\x1b[31mboo\u202e"""\n'
    )
    PreparedRun(tidewheel, flow).starts()
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("preparing").press("end", "enter").sees("task 1/a", "\\x1b[2J")


def test_without_a_run_somebody_chooses_one(tidewheel):
    PreparedRun(tidewheel)
    half_done(tidewheel)
    with on_terminal(tidewheel, "tui") as tui:
        tui.sees("forecast/run1", "forecast/run2", "○ created", "▶ running", "enter choose")
        tui.press("enter").sees("forecast/run2  ▶ running", "model_b")
        tui.press("b").sees("enter choose").press("down", "enter").sees("forecast/run1  ○")


def test_the_list_of_runs_has_its_help(tidewheel):
    PreparedRun(tidewheel)
    with on_terminal(tidewheel, "tui") as tui:
        tui.sees("forecast/run1", "? help")
        tui.press("?").sees("In the list of runs", "the run under the cursor", "esc back")
        tui.press("esc").sees("forecast/run1", "enter choose")
        assert tui.press("?").sees("In the list of runs").press("q").ends() == 0


CHAIN = "[scheduling]\n  [[graph]]\n    R1 = a => b\n[runtime]\n  [[a, b]]\n"


def test_a_stalled_run_says_why_at_its_top_and_is_first_in_the_list(tidewheel):
    PreparedRun(tidewheel, CHAIN, "chain").starts().fails("1/a")
    half_done(tidewheel)
    with on_terminal(tidewheel, "tui") as tui:
        tui.sees_line("chain/run1", "✖ stalled", "0/2 done", "stalled for")
        tui.sees_line("forecast/run1", "▶ running", "done", "changed")
        tui.press("enter").sees("chain/run1  ✖ stalled")
        tui.sees_line("stalled for", ": 1/a failed", "1 task waits for it")
        tui.press("w").sees("why chain/run1 does not continue", "tidewheel trigger chain/run1")


def test_a_key_goes_to_the_next_failure_and_one_more_opens_its_log(tidewheel):
    half_done(tidewheel).writes_log("1/model_a", "job.err", "CFL violated\n")
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees_line("model_b", "▶ running  for ")
        tui.press("n", "e").sees("err of 1/model_a", "CFL violated")


def test_with_a_filter_a_command_takes_what_is_shown_and_says_of_how_many(tidewheel):
    run = half_done(tidewheel)
    with run.answering() as heard, on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("model_b").press("/", ":running", "enter").sees_no("model_a")
        tui.sees("1 of ", " shown: 1 ").press("home", "H")
        tui.sees("tidewheel hold forecast/run1 1/model_b", "(only 1 of ").press("y")
        tui.sees("1/model_b is held")
    [command] = map(json.loads, heard)
    assert command["ids"] == ["1/model_b"]


def test_help_names_every_key(tidewheel):
    half_done(tidewheel)
    with on_terminal(tidewheel, "tui", "forecast", size=(80, 45)) as tui:
        tui.sees("model_b").press("?").sees("pause, resume and stop the run", "hold, release")
        tui.sees("✖ failed", "States").press("esc").sees("model_b")


def test_a_signal_or_a_run_that_is_deleted_leaves_the_terminal_as_it_was(tidewheel):
    run = half_done(tidewheel)
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("model_b")
        tui.send(signal.SIGTERM)
        assert tui.ends() == 0
        tui.is_given_back()
    run.is_let_go()
    with on_terminal(tidewheel, "tui", "forecast") as tui:
        tui.sees("model_b")
        assert tidewheel("runs", "--delete", run.name, "--yes").status == 0
        tui.sees("the run is deleted").press("b").sees("there are no runs")
        assert tui.press("q").ends() == 0


def test_it_needs_a_terminal_and_one_run(tidewheel):
    answer = tidewheel("tui")
    assert answer.status == 2
    assert "tidewheel tree" in answer.err
    with on_terminal(tidewheel, "tui", "nothing") as tui:
        tui.sees("there is no run 'nothing'")
        assert tui.ends() == 2


def test_through_a_server_it_is_the_same(tidewheel):
    run = half_done(tidewheel)
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        given = {
            "TIDEWHEEL_SERVER": f"http://{server.address}",
            "TIDEWHEEL_TOKEN": server.caller("operate").token,
        }
        with run.answering(), on_terminal(tidewheel, "tui", "forecast", **given) as tui:
            tui.sees("model_b").press("end", "H").sees("hold 2/prep?")
            tui.press("y").sees("2/prep is held")
            tui.sees("blocked, held")


def test_through_a_server_a_reader_is_told_why_a_run_is_stalled(tidewheel):
    PreparedRun(tidewheel, CHAIN, "chain").starts().fails("1/a")
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        given = {
            "TIDEWHEEL_SERVER": f"http://{server.address}",
            "TIDEWHEEL_TOKEN": server.caller("read").token,
        }
        with on_terminal(tidewheel, "tui", **given) as tui:
            tui.sees_line("chain/run1", "✖ stalled", "0/2 done").press("enter")
            tui.sees_line("stalled for", ": 1/a failed", "1 task waits for it").press("w")
            tui.sees("why chain/run1 does not continue", "tidewheel trigger chain/run1")


def test_it_says_that_the_server_is_away_and_goes_on_when_it_is_back(tidewheel, own_port):
    half_done(tidewheel)
    at_home = {"home": tidewheel.state, "port": own_port}
    with ExitStack() as there:
        server = there.enter_context(running_server(tidewheel.store, **at_home))
        given = {
            "TIDEWHEEL_SERVER": f"http://{server.address}",
            "TIDEWHEEL_TOKEN": server.caller("read").token,
        }
        with on_terminal(tidewheel, "tui", "forecast", **given) as tui:
            tui.sees("model_b")
            there.close()
            tui.sees("trying again")
            with running_server(tidewheel.store, **at_home):
                tui.sees_no("trying again").press("end", "enter").sees("task 2/prep")


def test_a_real_run_is_watched_to_its_end(tidewheel):
    gate = tidewheel.folder / "gate"
    os.mkfifo(gate)
    (tidewheel.folder / "flow.cylc").write_text(
        "[scheduling]\n  [[graph]]\n    R1 = a => b\n[runtime]\n"
        f"  [[a]]\n    script = read line < {gate}\n  [[b]]\n    script = echo so it is\n"
    )
    with tidewheel.started("run", ".", "--json") as run:
        eventually_told(lambda: "running" in tidewheel("runs").out, "the run is there")
        with on_terminal(tidewheel, "tui") as tui:
            tui.sees("enter choose").press("enter")
            tui.sees_line("a  ▶ running")
            gate.write_text("go\n")
            tui.sees("b  ✔ succeeded", "✔ completed")
            tui.press("end", "o").sees("so it is", "(the end)")
            tui.press("esc", "L").sees("log of", "=> succeeded")
        run.wait()
