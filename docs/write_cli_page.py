"""Writes docs/cli.md from the commands themselves; a test compares the two."""

from __future__ import annotations

from pathlib import Path

import click

from tidewheel.cli.main import cli

PAGE = Path(__file__).with_name("cli.md")
HEAD = """# Command line

Made from the program by `python docs/write_cli_page.py`; do not edit by hand.

Every exit status is explained in [Exit codes](exit_codes.md). `--json` answers in JSON, on one
line per document.
"""


def page() -> str:
    """Every command with its help text."""
    top = click.Context(cli, info_name="tidewheel", terminal_width=96, max_content_width=96)
    sections = [HEAD, _section("tidewheel", cli.get_help(top))]
    for name in cli.list_commands(top):
        command = cli.get_command(top, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=top)
        context.terminal_width = context.max_content_width = 96
        sections.append(_section(f"tidewheel {name}", command.get_help(context)))
    return "\n".join(sections)


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n```text\n{text}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
