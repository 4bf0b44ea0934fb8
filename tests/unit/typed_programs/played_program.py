"""Tests of a workflow as a user writes them: what type checkers know of them, and find."""

from typing import reveal_type

from tidewheel import Workflow
from tidewheel.testing import Played, failed, play, submit_failed, succeeded

flow = Workflow("etl")
ends = {"fetch": failed(times=1), "a": succeeded(outputs=["x"]), "b": submit_failed()}
played: Played = play(flow, outcomes=ends, values={"fetch": [1, 2]}, lengths={"a": "2h"})

reveal_type(played.status)  # is str
reveal_type(played.ran("1/a"))  # is bool
reveal_type(played["1/a"])  # is PlayedTask
reveal_type(played.order)  # is list[str]
reveal_type(played.stalled)  # is dict[str, list[str]]

play(3)  # mistake: neither a path nor a workflow
play("ocean/", outcome=ends)  # mistake: it is called outcomes
play("ocean/", outcomes={"a": "failed"})  # mistake: a text is no outcome
failed(times="1")  # mistake: a text is no number
