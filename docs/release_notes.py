"""Gathers the sentences of changes/ into the release notes: a page of the site, made with it.

`make notes` prints the notes of the next release. `python docs/release_notes.py VERSION`, typed
when VERSION is released, writes changes/released/VERSION.md and removes the sentences.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHANGES = ROOT / "changes"
RELEASED = CHANGES / "released"
PLACE = "operations/release_notes.md"  # in the site
# What may need action comes first.
KINDS = {"changed": "Changed", "added": "Added", "fixed": "Fixed"}
NAME = re.compile(rf"(\d+)(?:-[\w-]+)?\.({'|'.join(KINDS)})\.md")
VERSION = re.compile(r"\d+\.\d+\.\d+")
HEAD = """# Release notes

What a user can notice, release by release. Under *Changed* is what may need action before you
upgrade: read it first, then follow [upgrade](upgrade.md). What a version number promises is in
[versions](versions.md).
"""


def main() -> int:
    """Prints the notes of the next release, or keeps them as those of a version."""
    if len(sys.argv) == 1:
        sys.stdout.write(gathered())
        return 0
    version = sys.argv[1]
    if not VERSION.fullmatch(version) or (RELEASED / f"{version}.md").exists():
        sys.stderr.write(f"{version} is not a new version; write one such as 0.2.0\n")
        return 2
    RELEASED.mkdir(exist_ok=True)
    (RELEASED / f"{version}.md").write_text(gathered(), encoding="utf-8")
    for path in fragments():
        path.unlink()
    return 0


def page() -> str:
    """The page of the site: what is not released yet, then every release, newest first."""
    parts = [HEAD, "## Not released yet\n", gathered()]
    for path in sorted(RELEASED.glob("*.md"), key=_number, reverse=True):
        parts += [f"## {path.stem}\n", path.read_text(encoding="utf-8")]
    return "\n".join(parts)


def fragments() -> list[Path]:
    """The files of changes/; a name that says no issue or kind is a mistake."""
    found = [path for path in CHANGES.glob("*.md") if path.name != "README.md"]
    wrong = [path.name for path in found if not NAME.fullmatch(path.name)]
    assert not wrong, f"changes/: {wrong}; accepted is NUMBER-WORD.KIND.md, KIND of {[*KINDS]}"
    return sorted(found, key=lambda path: (-int(NAME.sub(r"\1", path.name)), path.name))


def gathered() -> str:
    """The sentences of changes/ under their kinds, those of the newest issue first."""
    parts = []
    for kind, title in KINDS.items():
        of_kind = [path for path in fragments() if path.name.endswith(f".{kind}.md")]
        items = [item for path in of_kind for item in _items(path)]
        if items:
            parts.append(f"### {title}\n\n" + "\n".join(items) + "\n")
    return "\n".join(parts)


def _items(path: Path) -> list[str]:
    """Each paragraph of a file is an item; a list within a file is its items."""
    text = path.read_text(encoding="utf-8").strip()
    found = re.split(r"\n\s*\n|\n(?=[-*] )", text)
    return [f"- {_in_the_site(re.sub(r'^[-*] ', '', one))}" for one in found]


def _in_the_site(text: str) -> str:
    """One line, whose links lead from the page of the notes to where they led in changes/."""
    return re.sub(r"\]\((?:\.\./)?docs/", "](../", " ".join(text.split()))


def _number(path: Path) -> list[int]:
    return [int(part) for part in path.stem.split(".")]


if __name__ == "__main__":
    sys.exit(main())
