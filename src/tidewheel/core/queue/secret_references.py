"""Says what `secret:NAME` means: which texts are references, and which tasks may use which.

A reference is stored and shown as it is. Only the worker that starts a job puts a value in its
place (`runners/secret_values.py`). Tenants are names (0042), and so a secret needs no owner:
one filed under `team-a/` is for whatever `team-a` covers (`access.covers`), one without a `/`
for every job of a worker that has it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidewheel.lazy_dataclasses import pattern

REFERENCE = "secret:"
NAME_LENGTH_MAX = 200
# No part is "..", hidden or an option of a program; none has a *, a : or a ~, which mean
# something in patterns and in the names of systemd's credentials.
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*"
_NAME = pattern(rf"{_PART}(?:/{_PART})*")
ACCEPTED = (
    f"a secret is named {REFERENCE}NAME or {REFERENCE}TEAM/NAME: letters, digits, _ . @ + and "
    f"- (at the start of a part only letters, digits and _), up to {NAME_LENGTH_MAX} in all"
)

# The engine and Slurm keep the environment of what they run in files of theirs, in clear.
NO_SECRETS = (
    "{runner} would store a secret as plain text, so its jobs get no secrets: remove each "
    "value secret:NAME from the environment and parameters of the task, or run the task "
    "with bash"
)


def is_reference(value: object) -> bool:
    """Says whether a value is meant to be a reference to a secret."""
    return isinstance(value, str) and value.startswith(REFERENCE)


def secret_named(value: str) -> str:
    """Returns the name of the secret that is meant; raises ValueError for a bad reference."""
    name = value.removeprefix(REFERENCE)
    if len(name) > NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        raise ValueError(
            f"{value[:NAME_LENGTH_MAX]!r} is not a reference to a secret; {ACCEPTED}"
        )
    return name


def reference_findings(environment: Mapping[str, str]) -> list[str]:
    """Returns what is wrong with the references among the values of variables, in words."""
    findings = []
    for variable, value in environment.items():
        if is_reference(value):
            try:
                secret_named(value)
            except ValueError as error:
                findings.append(f"{variable}: {error}")
    return findings


def owner_of(secret: str) -> str:
    """Returns the name that must cover a task which uses this secret; "": it is for all."""
    return secret.rpartition("/")[0]
