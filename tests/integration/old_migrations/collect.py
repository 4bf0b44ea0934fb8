"""Collects every schema that a commit of this repository could make, for test_old_stores.py.

    python tests/integration/old_migrations/collect.py

Migrations used to be edited after they had landed. Here lie the versions of them that
are no longer in the tree, one file each, without comments: `<dialect>/<first commit>-<name>`.
`commits.json` says which files each commit had, oldest first; a name without a commit is that
of today's file.
"""

import json
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
MIGRATIONS = "src/tidewheel/store/migrations"
DIALECTS = ("sqlite", "postgres")


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def bare(sql: str) -> str:
    """Without comments, which are no part of a schema."""
    lines = (re.sub(r"\s*--.*", "", line).rstrip() for line in sql.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def files_of(commit: str, dialect: str) -> dict[str, str]:
    listed = git("ls-tree", "--name-only", commit, f"{MIGRATIONS}/{dialect}/").split()
    return {Path(path).name: bare(git("show", f"{commit}:{path}")) for path in sorted(listed)}


def main() -> None:
    commits = git("log", "--reverse", "--format=%h", "--", MIGRATIONS).split()
    found: dict[str, dict[str, list[str]]] = {commit: {} for commit in commits}
    for dialect in DIALECTS:
        folder = HERE / dialect
        folder.mkdir(exist_ok=True)
        today = {sql: name for name, sql in files_of("HEAD", dialect).items()}
        known: dict[tuple[str, str], str] = {}
        for commit in commits:
            names = []
            for name, sql in files_of(commit, dialect).items():
                if today.get(sql) == name:
                    names.append(name)
                    continue
                kept = known.setdefault((name, sql), f"{commit}-{name}")
                (folder / kept).write_text(sql, encoding="utf-8")
                names.append(kept)
            found[commit][dialect] = names
    (HERE / "commits.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
