"""The terminal interface without a terminal: keys, rows, what a key means, lines."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tidewheel.cli.tui import keymap
from tidewheel.cli.tui.app import which_lines
from tidewheel.cli.tui.keymap import (
    AskFirst,
    Do,
    Leave,
    LookAgain,
    ShowCauses,
    ShowLog,
    ShowTask,
    pressed,
)
from tidewheel.cli.tui.panes import (
    HELP,
    LOG_LINES_MAX,
    Choice,
    Pane,
    Question,
    State,
    by_need,
    cause_text,
    help_pane,
    run_lines,
)
from tidewheel.cli.tui.render import painted
from tidewheel.cli.tui.spans import StyledText, cut, fold, line
from tidewheel.cli.tui.terminal import Keys
from tidewheel.cli.tui.tree import Tree
from tidewheel.cli.verbs import TABLE, YES


def plain(spans):
    return "".join(one.text for one in spans)


def task(name, state="waiting", point="1", *, submits=0, distance=0, remarks=()):
    one = {
        "submit": 1,
        "status": "failed",
        "started_at": None,
        "ended_at": None,
        "attempts": [],
    }
    return {
        "name": name,
        "family": False,
        "id": f"{point}/{name}",
        "state": state,
        "remarks": list(remarks),
        "flows": [1],
        "distance": distance,
        "submissions": [one | {"submit": n + 1, "exit_status": 1} for n in range(submits)],
    }


def page(*points):
    return {
        "run": "a/run1",
        "status": "running",
        "left_out": 0,
        "points": [
            {"point": point, "counts": {"waiting": 1}, "children": children}
            for point, children in points
        ],
    }


PAGE = page(
    (
        "1",
        [
            task("a", "succeeded", submits=2, distance=None),
            {"name": "FAM", "family": True, "children": [task("b", "failed"), task("c")]},
        ],
    ),
    ("2", [task("a", point="2", remarks=["held"])]),
)
STATE = State(run="a/run1", tree=Tree(page=PAGE))


def press(state, *keys):
    wish = None
    for key in keys:
        state, wish = pressed(state, key)
        state, _ = painted(state)
    return state, wish


def names(state):
    return [row.name for row in state.tree.rows]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ([b"j"], ["j"]),
        ([b"\x1b[A\x1b[B"], ["up", "down"]),
        ([b"\x1bOA"], ["up"]),
        ([b"\x1b", b"[", b"5", b"~x"], ["pgup", "x"]),
        (["ø".encode()[:1], "ø".encode()[1:]], ["ø"]),
        ([b"\x1b[200~\x1b[1;5C"], []),
        ([b"\r\t\x7f "], ["enter", "tab", "backspace", " "]),
    ],
)
def test_keys_have_names_in_however_many_parts_they_come(content, names):
    keys = Keys()
    assert [key for part in content for key in keys.feed(part)] == names
    assert not keys.is_waiting


def test_an_escape_alone_is_a_key_when_nothing_follows():
    keys = Keys()
    assert keys.feed(b"\x1b") == []
    assert keys.is_waiting
    assert keys.flush() == ["esc"]
    assert keys.feed(b"\x1b\x1b[A") == ["esc", "up"]


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_no_bytes_of_a_keyboard_are_too_much(parts):
    keys = Keys()
    found = [key for part in parts for key in keys.feed(part)] + keys.flush()
    assert all(found)


def test_points_and_families_are_open_and_tasks_are_closed():
    assert names(STATE) == ["1", "a", "FAM", "b", "c", "2", "a"]
    state, _ = press(STATE, "down", "right")
    assert names(state)[:4] == ["1", "a", "01", "02"]
    state, _ = press(state, "home", "left")
    assert names(state) == ["1", "2", "a"]


def test_a_submission_that_was_tried_again_opens_down_to_its_attempts_and_their_logs():
    tried = task("a", "failed", submits=1)
    tried["submissions"][0]["attempts"] = [
        {"attempt": number, "worker": "w1", "started_at": None, "ended_at": None}
        | {"ended_by": ended_by, "exit_status": None}
        for number, ended_by in ((1, "lapse"), (2, None))
    ]
    state = replace(STATE, tree=Tree(page=page(("1", [tried]))))
    state, _ = press(state, "down", "right", "down")
    assert state.tree.row.beside == "exit 1, 2 attempts"
    state, _ = press(state, "right")
    assert names(state) == ["1", "a", "01", "attempt 1", "attempt 2"]
    assert [row.beside for row in state.tree.rows[3:]] == ["lapse, w1", "running, w1"]
    state, wish = press(state, "down", "o")
    assert wish == ShowLog("1/a", "out", 1, 1)
    assert press(state, "left", "left")[0].tree.row.name == "01"


def test_a_very_large_point_is_closed_until_it_is_opened():
    large = page(("1", [task(f"t{n}") for n in range(3)]))
    large["points"][0]["counts"] = {"waiting": 10_000}
    state = replace(STATE, tree=Tree(page=large))
    assert names(state) == ["1"]
    assert names(press(state, "right")[0]) == ["1", "t0", "t1", "t2"]
    assert names(press(state, "/", "t", "1")[0]) == ["1", "t1"]


def test_the_cursor_stays_on_its_task_while_the_run_goes_on():
    state, _ = press(STATE, "end")
    assert state.tree.row.ids == "2/a"
    later = page(
        ("1", [task("x"), task("y")]), ("2", [task("0", point="2"), task("a", point="2")])
    )
    state = replace(state, tree=state.tree.changed(page=later))
    assert state.tree.row.ids == "2/a"
    gone = replace(state, tree=state.tree.changed(page=page(("2", [task("0", point="2")]))))
    assert gone.tree.row.ids == "2/*"
    nothing = replace(state, tree=state.tree.changed(page=page()))
    assert nothing.tree.row is None
    assert press(nothing, "down", "enter", "t", "o", "right", "left", " ")[1] is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("b", ["1", "FAM", "b"]),
        ("2/*", ["2", "a"]),
        (":fail", ["1", "FAM", "b"]),
        (":held", ["2", "a"]),
        ("a:succ", ["1", "a"]),
        ("nothing", []),
        ("[", []),
    ],
)
def test_what_is_looked_for_is_shown_with_what_it_is_in(query, found):
    state, _ = press(STATE, "/", *query)
    assert names(state) == found
    assert names(press(state, "esc")[0]) == names(STATE)


def test_the_pool_is_what_is_not_over():
    assert names(press(STATE, "tab")[0]) == ["1", "FAM", "b", "c", "2", "a"]


def test_a_key_asks_before_it_does_anything():
    state, wish = press(STATE, "down", "t")
    assert wish == AskFirst(Question("trigger", ("1/a",), YES))
    asked = replace(state, question=wish.question, pane=help_pane())
    assert press(asked, "y")[1] == Do(wish.question, "")
    for key in ("n", "enter", "esc", "q", "t"):
        said, nothing = press(asked, key)
        assert (nothing, said.question) == (None, None)
        assert "nothing was done" in said.said


def test_stopping_says_how_and_concerns_the_run():
    state, wish = press(STATE, "S")
    assert wish.question == Question("stop", (), TABLE["stop"].confirm)
    asked = replace(state, question=wish.question)
    assert [press(asked, key)[1].mode for key in "ylK"] == ["clean", "now", "kill"]


def test_points_and_families_are_acted_on_as_a_whole_and_marks_together():
    assert press(STATE, "H")[1].question.ids == ("1/*",)
    assert press(STATE, "down", "down", "K")[1].question.ids == ("1/FAM",)
    assert press(STATE, "end", " ", "home", "down", " ", "x")[1].question.ids == ("1/a", "2/a")


@pytest.mark.parametrize(
    ("keys", "ids"),
    [
        (("/", *":failed", "enter", "home", "x"), ("1/b",)),  # on the point
        (("/", *":failed", "enter", "home", "down", "x"), ("1/b",)),  # on the family
        (("/", *"=a", "enter", "home", "H"), ("1/a",)),
        (("/", *"=a", "enter", "home", " ", "end", " ", "H"), ("1/a", "2/a")),
        (("/", *"fam", "enter", "home", "H"), ("1/b", "1/c")),  # of a family
        (("/", *"1/f*", "enter", "home", "H"), ("1/b", "1/c")),
        (("tab", "home", "x"), ("1/b", "1/c")),  # the pool alone
        (("tab", "home", "left", "x"), ("1/b", "1/c")),  # of a point that is closed, too
        (("/", *":held", "enter", "home", "R"), ("2/a",)),
    ],
)
def test_a_command_is_about_what_the_filter_shows_and_nothing_else(keys, ids):
    assert press(STATE, *keys)[1].question.ids == ids


def test_what_is_marked_and_hidden_by_the_filter_is_left_alone_and_counted():
    marked, _ = press(STATE, "end", " ", "home", "down", "down", "down", " ")
    assert marked.tree.marked == {"1/b", "2/a"}
    question = press(marked, "/", *":failed", "enter", "x")[1].question
    assert (question.ids, question.filter, question.hidden) == (("1/b",), ":failed", 1)
    assert list(which_lines(question)) == [
        "the filter :failed shows 1 of 1 task: the command applies only to these",
        "not included: 1 marked task, hidden by the filter",
    ]
    state, wish = press(marked, "/", *"c", "enter", "x")
    assert wish is None and "hides all marked tasks" in state.said


def test_a_question_says_how_many_of_all_tasks_the_filter_shows():
    state, wish = press(STATE, "/", *":failed", "enter", "home", "x")
    question = wish.question
    assert (question.ids, question.of) == (("1/b",), 3)
    assert next(which_lines(question)).startswith("the filter :failed shows 1 of 3 tasks")
    _, lines = painted(replace(state, question=question))
    assert plain(lines[-1]).startswith("remove 1/b (only 1 of 3 tasks)?  y: do it")


def test_a_question_always_has_room_for_its_answers():
    ids = tuple(f"20260101T0000Z/a_very_long_name_{n}" for n in range(5))
    _, lines = painted(replace(STATE, question=Question("remove", ids, YES)))
    assert plain(lines[-1]).rstrip() == "remove (5 tasks)?  y: do it; any other key: cancel"
    _, wide = painted(replace(STATE, question=Question("remove", ids, YES), size=(130, 24)))
    assert plain(wide[-1]).startswith(f"remove {ids[0]} {ids[1]} … (5 tasks)?  y: do it")


def test_with_a_filter_points_and_families_say_how_many_of_their_tasks_are_shown():
    state, _ = press(STATE, "/", *":failed", "enter")
    assert [(row.name, row.beside) for row in state.tree.rows] == [
        ("1", "1 of 3 shown: 1 failed"),
        ("FAM", "1 of 2 shown: 1 failed"),
        ("b", ""),
    ]
    _, lines = painted(state)
    assert plain(lines[0]).rstrip().endswith("[/:failed]  1 of 4 shown: 1 failed")


def test_a_filter_that_is_wrong_says_so_and_lets_nothing_be_acted_on():
    state, wish = press(STATE, "/", *":wrong", "enter", "x")
    assert (wish, names(state)) == (None, [])
    _, lines = painted(replace(state, size=(200, 24)))
    assert "state 'wrong': expected running, submitted" in "".join(map(plain, lines))


def test_a_point_says_with_a_bar_how_far_it_is():
    [point, *others] = PAGE["points"]
    far = {**PAGE, "points": [{**point, "tasks": 4, "done": 3}, *others]}
    row = Tree(page=far).rows[0]
    assert row.beside.startswith("██████░░ 3/4 done  1 waiting")
    assert Tree(page=PAGE).rows[0].beside == "1 waiting"  # an older server does not say


def test_every_line_of_the_help_fits_a_terminal_of_80_columns():
    assert [one for one in map(plain, help_pane().lines) if len(one) > 80] == []


@pytest.mark.parametrize("fold", ["enter", "left"])
def test_with_a_filter_a_family_and_a_point_fold_and_unfold(fold):
    state, _ = press(STATE, "/", *":failed", "enter", "home", "down", fold)
    assert (names(state), state.tree.row.is_open) == (["1", "FAM"], False)
    assert press(state, "x")[1].question.ids == ("1/b",)  # as it is shown, when it is open
    assert names(press(state, "enter")[0]) == ["1", "FAM", "b"]
    assert names(press(state, "home", fold)[0]) == ["1"]
    assert names(press(state, "esc")[0]) == names(STATE)  # what is folded is found next time
    assert names(press(state, "/", "backspace")[0]) == ["1", "FAM", "b"]


def test_a_task_that_is_marked_in_a_folded_family_is_acted_on_with_a_filter_as_without():
    state, _ = press(STATE, "/", *":failed", "enter", "end", " ", "up", "left", "home", "x")
    question = press(state, "x")[1].question
    assert (question.ids, question.hidden) == (("1/b",), 0)


def test_keys_that_look():
    assert press(STATE, "q")[1] == Leave()
    assert press(STATE, "r")[1] == LookAgain()
    assert press(STATE, "down", "enter")[1] == ShowTask("1/a")
    assert press(STATE, "down", "e")[1] == ShowLog("1/a", "err", None)
    assert press(STATE, "down", "right", "down", "down", "o")[1] == ShowLog("1/a", "out", 2)
    assert press(STATE, "w")[1] == ShowCauses()
    assert press(STATE, "L")[1] == ShowLog(None, "out", None)
    assert press(STATE, "o")[1] is None  # of a point


def test_every_key_that_acts_is_in_the_help_and_on_the_page():
    told = " ".join(left for left, _ in HELP).split()
    assert {*keymap.BY_KEY, *keymap.FILES} <= set(told)
    page = (Path(__file__).parents[2] / "docs" / "tui.md").read_text()
    acting = keymap.BY_KEY
    assert acting.keys() == {"t", "s", "x", "H", "R", "K", "P", "U", "S"}
    assert all(f"`{key}`" in page and verb.name in page for key, verb in acting.items())


def test_a_log_that_is_followed_shows_its_end_until_somebody_goes_up():
    log = Pane(kind="log", subject="x", follows=True).longer(line(str(n)) for n in range(50))
    size = (80, 10)
    assert log.shown_from(size) == 40
    up = log.moved(-1, size)
    assert (up.shown_from(size), up.follows) == (39, False)
    assert up.longer([line("more")]).shown_from(size) == 39
    long = log.longer(line("x") for _ in range(2 * LOG_LINES_MAX))
    assert len(long.lines) == LOG_LINES_MAX


WORDS = st.text(alphabet=st.characters(exclude_categories=("C",)), max_size=60)


@pytest.mark.slow
@given(st.lists(WORDS, max_size=4), st.integers(1, 60))
def test_a_line_is_as_wide_as_the_screen_whatever_is_in_it(texts, width):
    assert cell_len(plain(cut([StyledText(one) for one in texts], width))) == width


@given(WORDS, st.integers(20, 60))
def test_what_is_folded_is_all_there(text, width):
    folded = "".join(plain(one) for one in fold(line(text), width))
    assert "".join(folded.split()) == "".join(text.split())


@given(st.integers(20, 200), st.integers(5, 60), st.sampled_from(["", "?", "/b", "tab", "b"]))
def test_the_screen_is_filled_at_every_size(width, height, keys):
    state, _ = press(
        replace(STATE, size=(width, height)), *(keys if keys != "tab" else ["tab"])
    )
    _, lines = painted(state)
    assert len(lines) == height
    assert {cell_len(plain(one)) for one in lines} == {width}


def test_n_goes_to_the_next_failure_wherever_it_is_and_round():
    failed = {"name": "FAM", "family": True, "children": [task("b", "failed"), task("c")]}
    runs = page(
        ("1", [task("a"), failed, task("d", "expired")]),
        ("2", [task("a", point="2", remarks=["incomplete"])]),
    )
    state = replace(STATE, tree=Tree(page=runs))
    seen = []
    for _ in range(4):
        state, _ = press(state, "n")
        seen.append(state.tree.row.ids)
    assert seen == ["1/b", "1/d", "2/a", "1/b"]
    assert press(state, "N")[0].tree.row.ids == "2/a"
    assert press(state, "n", "N")[0].tree.row.ids == "1/b"
    folded, _ = press(state, "up", "left", "home", "left", "n")
    assert (folded.tree.row.ids, folded.tree.rows[2].is_open) == ("1/b", True)
    filtered, _ = press(state, "/", *":expired", "enter", "n")
    assert filtered.tree.row.ids == "1/d"


def test_n_says_that_nothing_failed_and_takes_the_pane_of_a_task_along():
    calm = replace(STATE, tree=Tree(page=page(("1", [task("a")])) | {"left_out": 3}))
    assert press(calm, "n")[0].said == "no task has failed; press a to see all points"
    about = replace(STATE, pane=Pane(kind="task", subject="1/a"))
    assert press(about, "n")[1] == ShowTask("1/b")
    covered, wish = press(replace(STATE, pane=help_pane()), "n")
    assert (covered.pane, wish, covered.tree.row.ids) == (None, None, "1/b")


def test_a_task_says_how_long_it_took_or_runs():
    done, running = task("a", "succeeded", submits=1), task("b", "running", submits=1)
    done["submissions"][0] |= {"started_at": at(-100), "ended_at": at(-10)}
    running["submissions"][0] |= {"started_at": at(-65)}
    tree = Tree(page=page(("1", [done, running, task("c")])), now=NOON)
    assert [row.beside for row in tree.rows[1:]] == ["1m 30s", "for 1m 5s", ""]


@pytest.mark.parametrize("width", [60, 80, 110, 130])
def test_the_help_is_all_there_at_every_width(width):
    state = replace(STATE, size=(width, 200), pane=help_pane())
    _, lines = painted(state)
    assert not [plain(one) for one in lines if "…" in plain(one)]


def test_the_list_of_runs_shows_its_keys_and_those_of_a_run_until_a_key_closes_them():
    runs = Choice(("a/run1", "b/run1"), (line("a/run1"), line("b/run1")), 1)
    state, wish = press(replace(STATE, choice=runs), "?")
    _, lines = painted(state)
    shown = "\n".join(map(plain, lines))
    assert "In the list of runs" in shown
    assert "the run under the cursor" in shown
    assert "b/run1" not in shown
    further = press(state, "end")[0]
    assert "waiting" in "\n".join(map(plain, painted(further)[1]))
    assert press(further, "q")[1] == Leave()
    back, wish = press(further, "esc")
    assert (back.choice, wish) == (runs, None)
    assert "b/run1" in "\n".join(map(plain, painted(back)[1]))


NOON = 1_800_000_000.0


def at(seconds):
    return datetime.fromtimestamp(NOON + seconds, UTC).isoformat()


def summary(*groups, until=None, **more):
    return {
        "stall": {"since": at(-3600), "until": until},
        "groups": [{"text": text, "ids": []} for text in groups],
        "causes": [],
        "done": 12,
        "tasks": 20,
        "total": 40,
        **more,
    }


def test_a_stalled_run_says_for_how_long_until_when_and_why():
    alike = (
        "63 tasks failed in the same way (member_*): exit 3, CFL violated; 1 task waits "
        "for them"
    )
    assert cause_text(summary(alike), NOON) == f"stalled for 1h: {alike}"
    text = cause_text(summary("a", "b", "c", until=at(120)), NOON)
    assert text == "stalled for 1h, stops in 2m: a; and 2 more causes (press w)"
    assert cause_text(summary("a", until=at(-1)), NOON) == "stalled for 1h: a"
    assert cause_text(summary(stall=None), NOON) == ""
    waits = {"id": "1/b", "reasons": [{"text": "1/b waits for an xtrigger\x1b[2J"}]}
    assert cause_text(summary(causes=[waits]), NOON).endswith(
        "1/b waits for an xtrigger\\x1b[2J"
    )


def test_the_cause_is_below_the_name_of_the_run_in_two_lines_at_most():
    cause = "stalled for 1h: " + "word " * 60
    _, lines = painted(replace(STATE, cause=cause))
    assert plain(lines[1]).startswith("stalled for 1h: word")
    assert plain(lines[2]).rstrip().endswith("…")
    assert plain(lines[3]).startswith("───")
    assert len(lines) == 24
    _, low = painted(replace(STATE, cause=cause, size=(80, 8)))
    assert plain(low[1]).startswith("───")


def listed(name, status, *, driven=True, age=60):
    facts = {"workflow": name[0], "number": 1, "created_at": at(-600), "ended_at": None}
    said = {"name": name, "status": status, "driven": driven, "updated_at": at(-age)}
    return facts | said


def test_a_run_that_goes_on_says_how_long_it_may_take_as_those_before_it_did():
    before = listed("a/run1", "completed") | {"created_at": at(-2000), "ended_at": at(-1100)}
    runs = [listed("a/run2", "running"), before]
    going, over = map(plain, run_lines(runs, {}, NOON))
    assert "about 5m left, changed" in going and "left" not in over
    late = [{**runs[0], "created_at": at(-1000)}, before]
    assert "left" not in plain(run_lines(late, {}, NOON)[0])
    alone = [{**runs[0], "driven": False}, before]
    assert "left" not in plain(run_lines(alone, {}, NOON)[0])


def test_runs_that_need_action_are_listed_first_with_how_far_they_are():
    runs = [
        listed("new/run1", "completed", driven=False),
        listed("a/run1", "running"),
        listed("b/run1", "paused", driven=False),
        listed("c/run1", "stalled"),
    ]
    ordered = by_need({"runs": runs})
    assert [one["name"][0] for one in ordered] == ["c", "b", "a", "n"]
    known = {"c/run1": summary(), "a/run1": summary(stall=None, total=None)}
    stalled, paused, running, _ = map(plain, run_lines(ordered, known, NOON))
    assert "██░░░░░░ 12/40 done" in stalled and "stalled for 1h" in stalled
    assert "no scheduler" in paused and "changed 1m ago" in paused
    assert "12/20+ done" in running


def test_a_run_is_not_listed_as_if_all_of_it_had_really_been_done():
    undone = {"lost": 2, "skipped": 0}
    runs = [listed("a/run1", "completed") | {"undone": undone, "mode": "skip"}]
    [shown] = map(plain, run_lines(runs, {}, NOON))
    assert "completed" in shown and "2 lost (skip mode: no jobs run), changed 1m ago" in shown
    seen = {**PAGE, "status": "completed", "undone": undone, "mode": "skip"}
    _, lines = painted(replace(STATE, tree=Tree(page=seen)))
    assert "completed, 2 lost (skip mode: no jobs run)" in plain(lines[0])
