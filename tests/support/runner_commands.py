"""Commands that behave as the suite for runners asks; for every runner that runs commands."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.kit.runner_conformance import SPOKEN, VALUES, Behaviour

SPEAKER = f"""
import os
from pathlib import Path
from tidewheel.runners.messages.client import send_message

me = Path(os.environ["TIDEWHEEL_JOB_DIR"]), os.environ["TIDEWHEEL_SECRET"]
for text, output in {SPOKEN!r}:
    send_message(*me, text=text, output=output)
send_message(*me, progress=0.5)
"""

REPEATER = """
import json, os
from pathlib import Path
from tidewheel.runners.messages.client import send_message

spec = json.loads(Path(os.environ["TIDEWHEEL_SPEC_FILE"]).read_text("utf-8"))
send_message(
    Path(os.environ["TIDEWHEEL_JOB_DIR"]), os.environ["TIDEWHEEL_SECRET"], text=spec["say"]
)
"""


def python(program: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}"


def command(behaviour: Behaviour, mailbox: Path) -> str:
    tell = f"echo $$ > {shlex.quote(str(mailbox))}"
    return {
        Behaviour.SUCCEED: "true",
        Behaviour.FAIL: "echo it was set to fail >&2; exit 3",
        Behaviour.SPEAK: python(SPEAKER),
        Behaviour.REPEAT_SPEC: python(REPEATER),
        Behaviour.HAND_ON: f'echo {shlex.quote(VALUES)} > "$TIDEWHEEL_OUTPUTS"',
        Behaviour.LAST: f"{tell}; sleep 600",
        Behaviour.REFUSE_TO_END: f"trap '' TERM; {tell}; while :; do sleep 600; done",
    }[behaviour]
