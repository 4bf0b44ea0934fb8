"""Builds the documentation as a site: `make docs`.

Zensical reads mkdocs.yml and makes the pages. Before it, the pages that lie elsewhere in the
repository are put beside those of docs/; after it, each page is made fit for the server's
policy, which allows no script and no style within a page, and nothing from another host:
scripts become files, and drawings become part of the page, coloured by the site's own styles.
"""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
STAGE = ROOT / "build" / "docs"  # what Zensical reads, and where it writes
BUILT = ROOT / "src" / "tidewheel" / "server" / "manual_pages"
KINDS = {".md", ".svg", ".png", ".css"}
# Pages of the repository that belong to the documentation, and where they stand in it.
ELSEWHERE = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "deploy/README.md": "operations/deploy.md",
    "tests/README.md": "project/tests.md",
}
# Pages that are made with the site, of what lies elsewhere: where one would lie, and its maker.
GENERATED = {"docs/operations/release_notes.md": DOCS / "release_notes.py"}
GENERATOR_LINK = re.compile(
    r'\s*Made with\s*<a href="https://zensical\.org/".*?</a>', re.DOTALL
)
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
DATA_IMAGE = re.compile(
    r"""url\((["'])data:image/svg\+xml;charset=utf-8,(.*?)\1\)""", re.DOTALL
)
# Zensical's search puts a style into the page; a sheet that a script makes is allowed.
SCRIPTED_STYLE = re.compile(r'(\w+)\.appendChild\(\w+\("style",\{\},(\w+)\.toString\(\)\)\)')
ADOPTED = r"(s=>{s.replaceSync(\2.toString());\1.adoptedStyleSheets=[s]})(new CSSStyleSheet)"
CELL = re.compile(r"<td.*?</td>", re.DOTALL)  # GitHub wants a bar in code escaped, Zensical not
DRAWING = re.compile(r'<img alt="([^"]*)" src="([^"]+\.svg)"[^>]*>')
# A page knows only what the system wants; the site has a switch of its own, which styles see.
PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"\s*/?>'
    r'\s*<img src="([^"]+)"([^>]*?)\s*/?>\s*</picture>'
)
UNFIT = {
    "*.html": re.compile(
        r'(?:src|href)="(?:https?:|data:)?//[^"]*"'
        r'|<style|<script>|<[^>]+ style="|<[^>]+ on\w+="'
    ),
    "*.css": re.compile(r"url\([\"']?(?:data:|https?:|//)[^)]*|@import[^;]*"),
}


def main() -> int:
    """Build where the server of this tree looks for it."""
    if wrong := build(STAGE, BUILT):
        sys.stderr.write(wrong)
        return 1
    pages = len(list(BUILT.rglob("*.html")))
    place = BUILT.relative_to(ROOT)
    sys.stdout.write(f"{pages} pages in {place}; a server of this tree shows them at /docs/\n")
    return 0


def build(work: Path, target: Path) -> str:
    """What is wrong, if anything; the target is replaced only if all went well."""
    shutil.rmtree(work, ignore_errors=True)
    stage(work)
    built = subprocess.run(
        [Path(sys.executable).parent / "zensical", "build", "--strict", "--clean"],
        cwd=work,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        return built.stdout + built.stderr
    site = work / "site"
    mend(site)
    if found := unfit(site):
        return "\n".join(found) + "\n"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(site, target)
    return ""


def stage(work: Path) -> None:
    """Copies what belongs to the site, with links that are right where it lies then."""
    pages = work / "pages"
    places = {
        path.relative_to(ROOT).as_posix(): path.relative_to(DOCS).as_posix()
        for path in sorted(DOCS.rglob("*"))
        if path.suffix in KINDS
    } | ELSEWHERE
    places |= {path: Path(path).relative_to("docs").as_posix() for path in GENERATED}
    for source, place in places.items():
        target = pages / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            maker = GENERATED.get(source)
            text = runpy.run_path(str(maker))["page"]() if maker else read(ROOT / source)
            target.write_text(relinked(text, source, places), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / source, target)
    shutil.copyfile(ROOT / "mkdocs.yml", work / "mkdocs.yml")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def relinked(text: str, source: str, places: dict[str, str]) -> str:
    """A page as it stands in the site: what is not in the site is named, not linked."""
    here = Path(places[source]).parent

    def moved(link: re.Match[str]) -> str:
        words, target, anchor = link[1], link[2], link[3] or ""
        if "://" in target:
            return link[0]
        path = os.path.normpath(Path(source).parent / target)
        if path not in places:
            return words
        return f"[{words}]({os.path.relpath(places[path], here)}{anchor})"

    return LINK.sub(moved, text)


def mend(site: Path) -> None:
    """Make the site fit for the server's policy, and for lying below any address."""
    for name in ("404.html", "sitemap.xml"):  # a server has its own, and no fixed address
        (site / name).unlink()
    for sheet in site.rglob("*.min.css"):
        rewrite(sheet, lambda text: DATA_IMAGE.sub(lambda found: icon(site, found[2]), text))
    [bundle] = site.glob("assets/javascripts/bundle.*.min.js")
    rewrite(bundle, with_adopted_style)
    rewrite(site / "search.json", lambda text: text.replace("\\\\|", "|"))
    for page in site.rglob("*.html"):
        rewrite(page, lambda text, page=page: mended(site, page, text))


def rewrite(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(read(path)), encoding="utf-8")


def with_adopted_style(bundle: str) -> str:
    text, count = SCRIPTED_STYLE.subn(ADOPTED, bundle)
    assert count == 1, "Zensical has another search now: look how it brings its styles"
    return text


def mended(site: Path, page: Path, text: str) -> str:
    """A page whose scripts are files and whose drawings are part of it."""
    up = os.path.relpath(site, page.parent)
    text = GENERATOR_LINK.sub("", text)
    text = text.replace('<a href="" ', f'<a href="{up}/index.html" ')
    text = INLINE_SCRIPT.sub(lambda found: script_file(site, up, found[1]), text)
    text = CELL.sub(lambda found: found[0].replace("\\|", "|"), text)
    text = PICTURE.sub(lambda found: by_day_and_night(found[2], found[1], found[3]), text)
    return DRAWING.sub(lambda found: inlined(page, found[2], found[1]), text)


def by_day_and_night(light: str, dark: str, rest: str) -> str:
    """Both pictures; the one that is not shown is not fetched either."""
    return "".join(
        f'<img class="{name}" src="{source}" loading="lazy"{rest}>'
        for name, source in (("by-day", light), ("by-night", dark))
    )


def script_file(site: Path, up: str, script: str) -> str:
    name = f"assets/page-{hashlib.sha256(script.encode()).hexdigest()[:12]}.js"
    (site / name).write_text(script, encoding="utf-8")
    return f'<script src="{up}/{name}"></script>'


def icon(site: Path, drawing: str) -> str:
    """A picture that a stylesheet had within itself, as a file beside the sheets."""
    name = f"icon-{hashlib.sha256(drawing.encode()).hexdigest()[:12]}.svg"
    (site / "assets" / "stylesheets" / name).write_text(unquote(drawing), encoding="utf-8")
    return f'url("../{name}")'


def inlined(page: Path, source: str, words: str) -> str:
    """A drawing as part of a page, without the colours that it has where it stands alone."""
    drawing = read(page.parent / source)
    drawing = re.sub(r"<style>.*?</style>\s*", "", drawing, flags=re.DOTALL)
    label = escape(words, quote=True)
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1).strip()


def unfit(site: Path) -> list[str]:
    """What the server's policy would keep from working, or what leads to other hosts."""
    return [
        f"{path.relative_to(site)}: {found[0][:80]}"
        for kind, rule in UNFIT.items()
        for path in sorted(site.rglob(kind))
        for found in rule.finditer(read(path))
    ]


if __name__ == "__main__":
    sys.exit(main())
