"""``tidewheel completion``: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click

HOW = {
    "bash": 'eval "$(tidewheel completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(tidewheel completion zsh)"   # in ~/.zshrc',
    "fish": "tidewheel completion fish | source   # in ~/.config/fish/config.fish",
}


@click.command("completion", epilog="\b\n" + "\n".join(HOW.values()))
@click.argument("shell", type=click.Choice(list(HOW)))
def command(shell: str) -> int:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    from tidewheel.cli.main import cli

    completion = get_completion_class(shell)
    assert completion is not None, shell
    click.echo(completion(cli, {}, "tidewheel", "_TIDEWHEEL_COMPLETE").source())
    return 0
