"""Networks and volumes that are there, with the labels that say whose they are.

They outlive the containers for which they were made when a worker is killed while it removes
them, and an engine has room for some thirty networks.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.runners.engine.names import LABELS, RUNNER, Tags
from tidewheel.runners.engine.program import Cli, json_rows

KINDS = ("network", "volume")


def label_fields(labels: Sequence[str]) -> list[str]:
    """Of a ``--format`` that prints JSON: the value of each label."""
    return [f'{{{{json (.Label "{label}")}}}}' for label in labels]


async def labelled(cli: Cli, runner: str) -> list[Tags]:
    """Whose they are, once for each."""
    found = []
    for kind in KINDS:
        mark = ("--filter", f"label={RUNNER}={runner}")
        text = await cli.ask(
            kind, "ls", *mark, "--format", f"[{','.join(label_fields(LABELS))}]"
        )
        for values in json_rows(text):
            found.append(Tags.read(runner, dict(zip(LABELS, values, strict=True))))
    return found
