"""Keeps the old name of `tidewheel.cli.cylc`; alone, for the command `cylc` of running jobs.

The file `bin/cylc` of a state directory that an earlier version wrote starts this module.
"""

if __name__ == "__main__":
    from runpy import run_module

    run_module("tidewheel.cli.cylc", run_name="__main__", alter_sys=True)
