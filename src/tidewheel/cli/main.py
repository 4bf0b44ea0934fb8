"""Runs ``tidewheel``: finds the command, and makes its outcome an exit status (exit_codes.py).

Nothing is imported before a command needs it.
"""

from __future__ import annotations

import sys

from tidewheel.wiring.machine import hide_memory

# These keep keys, and jobs of their user may be waiting for them to begin: nothing else is
# imported before.
if not {"worker", "up", "run", "server", "scheduler", "monitor"}.isdisjoint(sys.argv[1:]):
    hide_memory()

import io
import os
import signal
from collections.abc import Sequence
from importlib import import_module

import click

from tidewheel import __version__
from tidewheel.cli.exit_codes import ExitCode, FinalStatus, settled

COMPLETING = "_TIDEWHEEL_COMPLETE"  # in the environment: a shell wants words completed

ACTS = "Act on a run"
# In the order of --help; the texts are here so that --help loads no command.
SECTIONS = {
    "Definitions": {
        "init": "Make a folder with a working example.",
        "validate": "Check a workflow definition.",
        "graph": "Draw a workflow's graph, or print it for programs.",
        "list": "List the tasks and families of a workflow.",
        "config": "Print a workflow's settings after inheritance.",
        "view": "Print a definition with includes and templates resolved.",
        "rehearse": "Play a workflow on a virtual clock, without running jobs.",
        "convert": "Convert SIP files of version 1 to 2.0.",
        "register": "Register definitions under a name and a version.",
        "workflows": "List, show, check, render or remove registered workflows.",
    },
    "Runs": {
        "run": "Run a workflow, or resume one that was stopped.",
        "runs": "List runs; delete those that have ended.",
        "sbi": "Submit, list, show or abort scheduling block instances.",
        "blocks": "List, show or abort processing blocks.",
        "objects": "List, post or remove buffer objects that stages wait for.",
        "show": "Show a run or its tasks: state, outputs, submissions, history.",
        "why": "Say why a task does not run, and what would change that.",
        "tree": "Draw a run: points, families, tasks, submissions.",
        "log": "Print what a run or a job wrote.",
        "tui": "Watch a run in the terminal, and act on it.",
    },
    ACTS: {},  # the verbs, each a row of cli/verbs.py
    "Task queue": {
        "submit": "Submit a task, or many from a file.",
        "tasks": "List tasks, newest first.",
        "task": "Show everything about one task, and why it does not run.",
        "events": "Print what happens to tasks and runs, as it happens.",
        "cancel": "Cancel tasks, and all tasks that need them.",
        "resubmit": "Submit ended tasks again.",
        "queues": "List queues; pause, resume or configure one.",
        "workers": "List workers, their state and what they offer.",
        "worker": "Execute tasks until stopped.",
        "monitor": "Take back lapsed leases, and delete old tasks and runs.",
        "scheduler": "Drive runs that have no scheduler, until stopped.",
    },
    "Server": {
        "up": "Run server, scheduler, monitor and worker in one process.",
        "server": "Answer requests over HTTP until stopped.",
        "token": "Make, list and revoke the tokens that a server accepts.",
        "login": "Sign in at a server with your organisation's account.",
        "logout": "Sign out, and remove the token that login stored.",
        "session": "List who is signed in; end sessions.",
        "notify": "List, check or test the rules for notifications.",
    },
    "Store": {
        "verify": "Check the store for inconsistencies.",
        "audit": "List, export or check who changed what and who was refused.",
        "export": "Write tasks to a file as JSON lines.",
        "backup": "Copy the store to a new file while everything runs.",
        "migrate": "Upgrade the store to the schema of this version.",
        "completion": "Print the completion script for a shell.",
    },
}
EPILOG = """\b
First steps:
  tidewheel init forecast                          an example to start from
  tidewheel run DIR                                a workflow: DIR has a flow.cylc
  tidewheel up                                     the web page
  tidewheel submit --wait -- echo hello            a task, while `up` or a worker runs
`tidewheel COMMAND --help` explains each command, with examples. The manual is at /docs/ of
`tidewheel up` (in a clone after `make docs`), and in the folder docs of the source.
"""
# Commands that stand in one module of `cli/commands/`; every other one has that of its name.
MODULES = {
    "admin": ("token", "notify", "verify", "audit", "backup", "migrate"),
    "people": ("login", "logout", "session"),
    "definitions": ("validate", "list", "config", "view", "graph"),
    "queue": ("queues", "workers", "task", "events"),
    "runs": ("runs", "show", "why", "tree", "log", "tui"),
    "services": ("worker", "monitor", "scheduler", "server", "up"),
    "tasks": ("tasks", "cancel", "resubmit", "export"),
    "verbs": ("reload", "broadcast", "ext-trigger"),
    "workflows": ("register", "workflows", "sbi", "blocks", "objects"),
}
ALIASES = {"processing-blocks": "blocks"}  # as the REST interface calls it
# Commands of Cylc, Airflow and others, and what does the same here. Cylc's reload, hold and so
# on have the same names.
ELSEWHERE = {
    "backfill": "trigger RUN POINT/NAME --reflow",
    "cat-log": "log RUN POINT/NAME",
    "clean": "runs --delete RUN, or runs --delete-older P30D",
    "delete": "runs --delete RUN",
    "dump": "show RUN",
    "edit": "reload RUN (after a change of its files), or broadcast RUN",
    "gscan": "runs",
    "gui": "up",
    "get-config": "config PATH",
    "get-contact": "show RUN",
    "get-workflow-contact": "show RUN",
    "help": "--help, or tidewheel COMMAND --help",
    "install": "run DIR, or register PATH",
    "lint": "validate DIR --strict",
    "ls": "runs",
    "ping": "runs",
    "play": "run DIR",
    "ps": "runs, or tasks",
    "reinstall": "reload RUN",
    "report-timings": "tree RUN",
    "rerun": "trigger RUN POINT/NAME, or run DIR --new to run everything again",
    "restart": "run RUN",
    "retry": "trigger RUN POINT/NAME",
    "prune": "runs --delete-older P30D",
    "rm": "runs --delete RUN",
    "scan": "runs",
    "start": "run DIR",
    "status": "show RUN, or runs for all of them",
    "unhold": "release RUN POINT/NAME",
    "version": "--version",
    "vip": "run DIR (it validates first)",
    "vr": "reload RUN",
    "workflow-state": "show RUN POINT/NAME",
}


def sections() -> dict[str, dict[str, str]]:
    """Returns all commands, each with its line of --help, under their titles."""
    from tidewheel.cli.verbs import ROWS

    return SECTIONS | {ACTS: {verb.name: verb.summary for verb in ROWS}}


def commands() -> list[str]:
    """Returns the names of all commands."""
    return [name for section in sections().values() for name in section]


class LazyGroup(click.Group):
    """Imports a command's module only when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return commands()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = self._load(ctx, cmd_name)
        if COMPLETING in os.environ:
            from tidewheel.cli.completion import attach

            attach(command)
        return command

    @staticmethod
    def _load(ctx: click.Context, cmd_name: str) -> click.Command:
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if not any(cmd_name in section for section in SECTIONS.values()):
            from tidewheel.cli.verbs import TABLE

            if cmd_name not in TABLE:
                from difflib import get_close_matches

                if (here := ELSEWHERE.get(cmd_name)) is not None:
                    ctx.fail(f"there is no command {cmd_name!r}; use: tidewheel {here}")
                near = get_close_matches(cmd_name, commands(), n=1)
                meant = f"; did you mean {near[0]!r}?" if near else ""
                ctx.fail(f"there is no command {cmd_name!r}{meant}")
            if TABLE[cmd_name].words:
                from tidewheel.cli.commands.verbs import verb_command

                return verb_command(cmd_name)
        if cmd_name == completion.name:
            return completion
        found = [module for module, together in MODULES.items() if cmd_name in together]
        attribute = f"{cmd_name.replace('-', '_')}_command" if found else "command"
        module = import_module(f"tidewheel.cli.commands.{found[0] if found else cmd_name}")
        command: click.Command = getattr(module, attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        width = max(map(len, commands()))
        for title, section in sections().items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), text) for name, text in section.items()]
                )


@click.command(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG
)
@click.version_option(__version__, prog_name="tidewheel", message="%(prog)s %(version)s")
@click.option(
    "--store",
    "--server",
    "store",
    metavar="URL",
    help="The store or the server (or set TIDEWHEEL_STORE or TIDEWHEEL_SERVER).",
)
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_context
def cli(ctx: click.Context, store: str | None, *, as_json: bool) -> None:
    """Run workflows whose tasks repeat over cycle points, or use the durable task queue alone.

    The state of tasks and runs is in a database file of your own (see TIDEWHEEL_HOME), unless
    --store names another store, or --server a server.
    """
    from tidewheel.cli.session import Session

    ctx.obj = Session(store=store, as_json=as_json)


SHELLS = {
    "bash": 'eval "$(tidewheel completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(tidewheel completion zsh)"   # in ~/.zshrc',
    "fish": "tidewheel completion fish | source   # in ~/.config/fish/config.fish",
}


@click.command("completion", epilog="\b\n" + "\n".join(SHELLS.values()))
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> int:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(cli, {}, "tidewheel", COMPLETING).source())
    return 0


def main() -> None:
    """Runs the program and ends this process with its exit status."""
    status = program()
    if isinstance(status, FinalStatus):
        # The file that says that the result is owed is gone (runs/result.py): from there to the
        # exit nothing may happen that could fail.
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def program() -> int:
    """Runs the command line of this process; returns its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A letter that this terminal does not know is spelled, not a reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    # Also where the caller ignores it, as a shell does for what it starts in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return run(sys.argv[1:])


def run(arguments: Sequence[str]) -> int:
    """Runs one command, and returns its exit status."""
    try:
        outcome = cli.main(list(arguments), prog_name="tidewheel", standalone_mode=False)
        sys.stdout.flush()
        return settled(ExitCode.DONE if outcome is None else outcome)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return ExitCode.REFUSED
    except click.ClickException as error:
        from tidewheel.cli.error_output import tell_usage

        return tell_usage(error, _help_for(arguments), as_json=_wants_json(arguments))
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        from tidewheel.cli.session import stop_writing

        return stop_writing()
    except Exception as error:
        from tidewheel.cli.error_output import tell

        return tell(error, _help_for(arguments), as_json=_wants_json(arguments))


def _help_for(arguments: Sequence[str]) -> str:
    """Returns where the help about a command line is: that of its command, if it names one."""
    named = [one for one in arguments[:1] if one in commands()]
    return " ".join(["See: tidewheel", *named, "--help"])


def _wants_json(arguments: Sequence[str]) -> bool:
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own
