"""Advice about a run that was reached through a server: its commands say so as well.

Pasted without the option they would act on a run of the same name that is kept here.
"""

from __future__ import annotations

import re
from shlex import quote


def reached(text: str, run: str, option: str) -> str:
    """The text, with the option (`` --server URL``) in each command about the run."""
    if not option or "tidewheel " not in text:
        return text
    named = {run, quote(run), quote(f"run:{run}")}
    run_words = "|".join(map(re.escape, sorted(named, key=len, reverse=True)))
    command = rf"\btidewheel [a-z-]+ (?:--queue )?(?:{run_words})(?![\w/:.-])(?! --server)"
    return re.sub(command, lambda found: found[0] + option, text)
