"""Holds the errors of the registry; the tree is in ``tidewheel.errors``."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.errors import NotFound, Refused


class AlreadyRegistered(Refused):
    """A workflow of this name and version has other content."""

    code = "already_registered"

    def __init__(self, workflows: Iterable[str]) -> None:
        self.workflows = tuple(workflows)
        super().__init__(
            f"registered already with other content: {', '.join(self.workflows)}; nothing was "
            "stored. Give what is new another version, or remove the old one first: "
            f"tidewheel workflows remove {self.workflows[0] if self.workflows else ''}"
        )


class UnknownWorkflow(NotFound):
    """No workflow of this name and version is registered."""

    code = "unknown_workflow"

    def __init__(self, name: str, advice: str) -> None:
        super().__init__("workflow", name)
        self.advice = advice
        self.args = (f"no workflow {name!r} is registered; {advice}",)
