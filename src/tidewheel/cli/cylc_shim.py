"""Keeps the old name of `tidewheel.cli.cylc`; alone, as files `bin/cylc` start it by name.

An earlier version wrote such a file into the state directory, for the command `cylc` of jobs.
"""

if __name__ == "__main__":
    from runpy import run_module

    run_module("tidewheel.cli.cylc", run_name="__main__", alter_sys=True)
