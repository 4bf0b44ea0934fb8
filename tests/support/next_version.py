"""The version after this one, made of this one: a copy of the package with the changes below.

They are what a version may do to the one before it (docs/operations/versions.md): a field with
a default in answers, a field in a request that is sent only where it is used, and, in a version
with another schema, a field of tasks and its column. Each change quotes what it replaces, once
in its file.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import tidewheel
from tests.support.later_versions import OURS

PACKAGE = Path(tidewheel.__file__).parent
MAJOR, MINOR, _ = tidewheel.__version__.split(".")
NEXT = f"{MAJOR}.{int(MINOR) + 1}.0"
FIELD = "colour"
USES_IT = "TIDEWHEEL_TEST_COLOUR"  # in its environment: a worker says the field
CHANGES = (
    ("__init__.py", f'__version__ = "{tidewheel.__version__}"', f'__version__ = "{NEXT}"'),
    # An answer: a task that a worker has claimed. It is not stored.
    (
        "core/queue/requests.py",
        "    token: str | None = field(default=None, repr=False, compare=False)\n",
        "    token: str | None = field(default=None, repr=False, compare=False)\n"
        "    colour: str = 'none'\n",
    ),
    (
        "store/rows.py",
        '(Claimed, "token"): None,',
        '(Claimed, "token"): None, (Claimed, "colour"): None,',
    ),
    # A request: a worker that uses the field says it, and a server takes it.
    (
        "store/remote/operations.py",
        "    return said | abilities | asdict(worker.process)\n",
        "    import os\n"
        f"    colour = os.environ.get('{USES_IT}')\n"
        "    more = {} if colour is None else {'colour': colour}\n"
        "    return said | abilities | asdict(worker.process) | more\n",
    ),
    (
        "server/resources/queues.py",
        "    boot_id: str = UNKNOWN_BOOT\n    pid: Annotated[int, msgspec.Meta(ge=0",
        "    boot_id: str = UNKNOWN_BOOT\n    colour: str = 'none'\n"
        "    pid: Annotated[int, msgspec.Meta(ge=0",
    ),
)
# With another schema: a task has the field, too, which is stored.
STORED = (
    (
        "api/tasks.py",
        "    environment_text: str | None = None",
        "    colour: str = 'none'\n    environment_text: str | None = None",
    ),
    (
        "store/sql/fragments/task_view.sql",
        "SELECT task.seq, ",
        "SELECT task.seq, task.colour, ",
    ),
)
MIGRATION = f"{OURS + 1:04}_colours.sql"
MIGRATIONS = {
    "sqlite": "ALTER TABLE task ADD COLUMN colour TEXT NOT NULL DEFAULT 'none';\n",
    "postgres": (
        "ALTER TABLE tidewheel.task ADD COLUMN colour TEXT NOT NULL DEFAULT 'none';\n"
    ),
}


def make_next_version(folder: Path, *, new_schema: bool = False) -> dict[str, str]:
    """What a program needs in its environment to be the next version."""
    package = folder / "tidewheel"
    # Neither page nor manual: what is built is not the version's own.
    skipped = shutil.ignore_patterns("__pycache__", "built_page", "manual_pages")
    shutil.copytree(PACKAGE, package, ignore=skipped)
    for name, old, new in CHANGES + (STORED if new_schema else ()):
        path = package / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} no longer has, once: {old}"
        path.write_text(text.replace(old, new), encoding="utf-8")
    if new_schema:
        for dialect, sql in MIGRATIONS.items():
            (package / "store" / "migrations" / dialect / MIGRATION).write_text(sql)
    return {"PYTHONPATH": str(folder)}
