"""Writes docs/pictures/ and the styles of the site; a test compares them with what is there."""

from __future__ import annotations

from pathlib import Path

from drawing import Node, Picture, diagram, style_of_the_site
from write_charts import CHARTS

DOCS = Path(__file__).parent


def machines() -> Picture:
    nodes = {
        "people": Node(115, 40, "people, programs\ncommands, REST, browser"),
        "server": Node(330, 40, "servers\nany number", width=130),
        "far": Node(590, 40, "workers elsewhere\nHTTPS only", width=160),
        "store": Node(
            330,
            150,
            "the store: runs, tasks, registry\nPostgreSQL, or a SQLite file",
            "store",
            width=240,
        ),
        "scheduler": Node(80, 260, "schedulers\none drives a run,\none notifies", width=140),
        "monitor": Node(330, 260, "monitors\ntake back\nleases that ran out", width=160),
        "worker": Node(
            590, 260, "workers\nlease tasks; jobs by bash,\nSlurm, Compose, Swarm", width=180
        ),
    }
    edges = [
        ("people", "server", ""),
        ("far", "server", ""),
        ("server", "store", ""),
        ("people", "store", "--"),
        ("scheduler", "store", ""),
        ("monitor", "store", ""),
        ("worker", "store", ""),
    ]
    return diagram(700, 310, nodes, edges)


def spawning() -> Picture:
    """Three moments of one pool."""
    picture = Picture(720, 250)
    moments = (
        ("1/a runs", {"a": "running"}, "pool: 1/a"),
        (
            "1/a made its output",
            {"a": "succeeded", "b": "running", "c": "waiting"},
            "pool: 1/b, 1/c",
        ),
        ("1/b, too", {"a": "succeeded", "b": "succeeded", "c": "running"}, "pool: 1/c"),
    )
    for number, (title, states, pool) in enumerate(moments):
        x = 20 + number * 235
        picture.box(x, 40, 215, 160, "box")
        picture.text(x + 107, 28, title, bold=True)
        places = {"a": (x + 45, 120), "b": (x + 107, 75), "c": (x + 170, 120)}
        picture.line(*_beside(places["a"], places["b"]))
        picture.line(*_beside(places["b"], places["c"]))
        picture.line(*_beside(places["a"], places["c"]))
        for name, (cx, cy) in places.items():
            known = name in states
            look = states.get(name, "box")
            picture.box(cx - 24, cy - 16, 48, 32, look, dashed=not known)
            picture.text(
                cx, cy + 4, name if known else f"({name})", look="ink" if known else "soft"
            )
        picture.text(x + 107, 185, pool, size=12, look="soft")
    note = "a => b, a & b => c. Dashed: only in the graph; nothing is kept for it."
    picture.text(20, 232, note, size=12, look="soft", anchor="start")
    return picture


def _beside(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, ...]:
    """From border to border of two boxes of 48 by 32."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    part = min(25 / abs(dx) if dx else 9, 17 / abs(dy) if dy else 9)
    return (
        start[0] + dx * part,
        start[1] + dy * part,
        end[0] - dx * part,
        end[1] - dy * part,
    )


def leases() -> Picture:
    """A worker dies; another goes on; the first is heard no more."""
    picture = Picture(730, 270)
    lanes = {"worker A": 60, "the store": 130, "worker B": 200}
    for name, y in lanes.items():
        picture.text(88, y + 4, name, anchor="end")
        picture.line(98, y, 700, y, arrow=False, look="edge")
    picture.box(120, 50, 170, 20, "running")
    picture.text(205, 64, "attempt 1", size=12)
    for x in (150, 190, 230, 270):
        picture.line(x, 72, x, 122)
    picture.text(300, 100, "heartbeats", size=11, look="soft", anchor="start")
    picture.text(300, 42, "killed", size=12, anchor="start")
    picture.line(290, 46, 290, 74, arrow=False)
    picture.box(120, 122, 300, 16, "store")
    picture.text(330, 134, "lease of A", size=11)
    picture.text(432, 116, "deadline: lapse 1", size=12, anchor="end")
    picture.box(440, 122, 190, 16, "succeeded")
    picture.text(535, 134, "lease of B", size=11)
    picture.box(440, 190, 180, 20, "running")
    picture.text(530, 204, "attempt 2", size=12)
    picture.line(440, 142, 440, 186)
    picture.line(620, 188, 620, 142)
    picture.text(628, 170, "succeeded", size=12, anchor="start")
    picture.line(480, 62, 480, 118, dashed=True)
    picture.text(488, 88, "a late report of attempt 1: refused", size=12, anchor="start")
    note = "The deadline is by the database's clock; the attempt's number decides who is heard."
    picture.text(20, 252, note, size=12, look="soft", anchor="start")
    return picture


# A test compares these with the table of the program.
STATUS_EDGES = [
    ("waiting", "ready", "satisfied"),
    ("ready", "running", "claim"),
    ("running", "succeeded", ""),
    ("running", "failed", ""),
    ("running", "cancelling", "cancel"),
    ("cancelling", "cancelled", "any end"),
    ("ready", "cancelled", "cancel"),
    ("waiting", "cancelled", ""),
]
STATUS_CURVE = ("running", "ready")
STATUS_NOTED = [("waiting", "succeeded"), ("ready", "succeeded")]


def statuses() -> Picture:
    nodes = {
        "waiting": Node(80, 60, "waiting", "waiting", 100),
        "ready": Node(250, 60, "ready", "ready", 100),
        "running": Node(440, 60, "running", "running", 100),
        "succeeded": Node(630, 20, "succeeded", "succeeded", 110),
        "failed": Node(630, 90, "failed", "failed", 110),
        "cancelling": Node(440, 170, "cancelling", "warned", 110),
        "cancelled": Node(250, 170, "cancelled", "cancelled", 110),
    }
    picture = diagram(720, 250, nodes, STATUS_EDGES)
    picture.parts.append(
        '<path class="line" stroke-width="1.5" marker-end="url(#tw-head)" '
        'd="M420 42C390 8 300 8 270 42"/>'
    )
    picture.text(345, 13, "retry, yield, lapse", size=11, look="soft")
    note = "A task with nothing to execute succeeds as soon as it waits for nothing more."
    picture.text(20, 236, note, size=12, look="soft", anchor="start")
    return picture


def flows() -> Picture:
    """A reflow from 2/model on, bounded by point 3."""
    picture = Picture(720, 260)
    xs, ys = (120, 270, 420, 570), {"model": 80, "chart": 160}
    for number, x in enumerate(xs, 1):
        picture.text(x, 30, f"point {number}", bold=True)
        again = number in (2, 3)
        for name, y in ys.items():
            picture.box(x - 45, y - 18, 90, 36, "second" if again else "succeeded")
            picture.text(x, y - 1, name)
            words = "flow 1, again 2" if again else "flow 1"
            picture.text(x, y + 13, words, size=10, look="soft")
        picture.line(x, 98, x, 142)
        if number < len(xs):
            picture.line(x + 45, 80, xs[number] - 45, 80)
    picture.text(
        20,
        226,
        "trigger 2/model --reflow --until 3: a second flow walks through points 2 and 3",
        size=12,
        look="soft",
        anchor="start",
    )
    picture.text(
        20, 246, "and leaves everything else as it is.", size=12, look="soft", anchor="start"
    )
    return picture


def run_states() -> Picture:
    nodes = {
        "created": Node(80, 120, "created\nwaits for a scheduler", width=140),
        "running": Node(290, 120, "running", "running", 100),
        "paused": Node(290, 30, "paused", "warned", 100),
        "stalled": Node(290, 215, "stalled\nneeds action", "failed", 130),
        "stopping": Node(480, 120, "stopping", "warned", 100),
        "stopped": Node(640, 120, "stopped", "cancelled", 100),
        "completed": Node(560, 30, "completed", "succeeded", 110),
        "release": Node(80, 215, "waiting for release\nall is held", "warned", 150),
        "error": Node(560, 215, "error\nput aside, as it was before", "failed", 200),
    }
    edges = [
        ("created", "running", ""),
        ("running", "paused", "pause, resume"),
        ("running", "stalled", "trigger, set"),
        ("running", "stopping", "stop"),
        ("stopping", "stopped", ""),
        ("running", "completed", ""),
        ("running", "release", ""),
        ("running", "error", ""),
    ]
    picture = diagram(720, 290, nodes, edges)
    note = "tidewheel run NAME carries on what was stopped, stalled or put aside."
    picture.text(20, 278, note, size=12, look="soft", anchor="start")
    return picture


def loop() -> Picture:
    nodes = {
        "worker": Node(
            100, 50, "a worker reports,\na person commands,\na timer is due", width=150
        ),
        "event": Node(
            310, 50, "event\nin the transaction\nthat changed the task", "store", 160
        ),
        "step": Node(
            540, 50, "step(graph, pool, event)\npure: no clock, no files", "running", 190
        ),
        "batch": Node(
            540, 170, "batch\none transaction: pool,\nnew tasks, timers, answers", "store", 190
        ),
        "ready": Node(310, 170, "ready tasks\nin the queue of the run", "ready", 170),
        "jobs": Node(100, 170, "workers\nrun jobs", width=130),
    }
    edges = [
        ("worker", "event", ""),
        ("event", "step", ""),
        ("step", "batch", "changes"),
        ("batch", "ready", ""),
        ("ready", "jobs", ""),
        ("jobs", "worker", ""),
    ]
    return diagram(720, 230, nodes, edges)


def tide() -> Picture:
    """The workflow of the tutorial, as it stalls."""
    picture = Picture(720, 230)
    ended = {"1": "succeeded", "2": "failed", "3": "waiting"}
    for number, x in enumerate((130, 360, 590), 1):
        picture.text(x, 28, f"point {number}", bold=True)
        looks = {"measure": "succeeded", "model": ended[str(number)], "publish": "box"}
        if number == 1:
            looks["publish"] = "succeeded"
        for name, y in (("measure", 65), ("model", 120), ("publish", 175)):
            picture.box(x - 50, y - 17, 100, 34, looks[name])
            picture.text(x, y + 4, name)
        picture.line(x, 82, x, 103)
        picture.line(x, 137, x, 158)
        if number > 1:
            picture.line(x - 180, 120, x - 50, 120)
    note = (
        "Green has succeeded, red failed; the rest waits for it. Arrows are those of the graph."
    )
    picture.text(20, 220, note, size=12, look="soft", anchor="start")
    return picture


def stages() -> Picture:
    nodes = {
        "files": Node(105, 50, "a definition\nand its stage folders", width=170),
        "registry": Node(360, 50, "the registry\nNAME/VERSION", "store", 150),
        "request": Node(360, 170, "a request: run -p\nwith its parameters", width=160),
        "block": Node(105, 170, "processing blocks\nseveral requests at once", width=180),
        "run": Node(
            600, 110, "a run\nstages as commands,\nscripts or containers", "running", 180
        ),
    }
    edges = [
        ("files", "registry", "register"),
        ("registry", "run", ""),
        ("block", "request", ""),
        ("request", "run", ""),
    ]
    return diagram(720, 220, nodes, edges)


PICTURES = {
    "machines": machines,
    "tide": tide,
    "stages": stages,
    "spawning": spawning,
    "leases": leases,
    "statuses": statuses,
    "flows": flows,
    "run_states": run_states,
    "loop": loop,
    **CHARTS,
}


def files() -> dict[str, str]:
    """The text of each file by its path below docs/."""
    made = {f"pictures/{name}.svg": draw().svg() for name, draw in PICTURES.items()}
    return {**made, "assets/site.css": style_of_the_site()}


if __name__ == "__main__":
    for name, text in files().items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
