"""Why a job stays in Slurm's queue, where that does not pass by itself.

Slurm's own reasons, in words: its list shows them with every job, so nothing more is asked.
"""

from __future__ import annotations

from tidewheel.runners.slurm.ends import WAITS
from tidewheel.runners.slurm.programs import SlurmRow

# Others end, a time comes, a licence is given back: nobody has to do anything.
_PASSES = frozenset(
    {"", "None", "Priority", "Resources", "BeginTime", "Dependency", "Licenses"}
    | {"Prolog", "Cleaning", "JobArrayTaskLimit"}
)
_ADVICE = {
    "JobHeldUser": "it is held: scontrol release {id} lets it go",
    "JobHeldAdmin": "an administrator holds it, and has to let it go",
    "DependencyNeverSatisfied": "what its --dependency names has failed",
    "PartitionTimeLimit": "its partition does not allow so long a --time",
    "PartitionNodeLimit": "its partition does not have so many --nodes",
    "PartitionDown": "its partition takes no jobs at present",
    "PartitionInactive": "its partition takes no jobs at present",
    "BadConstraints": "no node has what it asks for",
    "ReqNodeNotAvail": "nodes that it asks for are down or reserved",
    "Nodes required for job are DOWN": "nodes that it asks for are down or reserved",
}
_MORE = "scontrol show job {id} says more"


def turn_words(row: SlurmRow) -> str:
    """What is said of a job that had to be told of, and only waits for its turn now."""
    return f"Slurm job {row.id} waits for its turn"


def is_of_queue(text: str) -> bool:
    """Whether a message is one of these: the job that it is about has not begun."""
    return text.removeprefix("waiting: ").startswith("Slurm job ")


def waiting_words(row: SlurmRow) -> str:
    """What somebody should know of a job that waits; empty if it only waits for its turn."""
    reason = row.reason.strip("()")
    if row.state not in WAITS or reason in _PASSES or _is_limit_on_many(reason):
        return ""
    kind = reason.partition(",")[0]
    advice = _ADVICE.get(kind, _MORE).format(id=row.id)
    return f"waiting: Slurm job {row.id} stays in Slurm's queue ({reason}); {advice}"


def _is_limit_on_many(reason: str) -> bool:
    """One on all jobs of an account or a user together, which passes when others end."""
    is_limit = reason.startswith(("Assoc", "QOS", "Max")) and reason.endswith("Limit")
    return is_limit and "PerJob" not in reason
