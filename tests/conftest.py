"""What every suite shares: chance, patience, signals, and which requirements a test proves."""

import faulthandler
import os
import signal
import threading

import pytest
import pytest_timeout
from hypothesis import HealthCheck, settings

from tests.support.patience import allowed

pytest_plugins = ["tests.support.fixtures", "tests.support.cli_fixture"]

# From hypothesis's own default, which CI=true would replace. In CI the seed of the run alone
# says which examples are tried; by hand what failed here before is tried, too.
# Slow is no failure, on a loaded machine least of all: speed lives in bench/.
REMEMBERED = {"database": None} if os.environ.get("CI", "") not in ("", "0", "false") else {}
for name, examples in {"dev": 100, "nightly": 5000}.items():
    settings.register_profile(
        name,
        settings.get_profile("default"),
        max_examples=examples,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
        **REMEMBERED,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_configure() -> None:
    """Be a process as the tests expect one, in every worker of pytest-xdist."""
    # run_suites.py asks for the stacks of a suite that hangs; capturing has not begun yet.
    faulthandler.register(signal.SIGUSR1, os.dup(2), all_threads=True)
    if threading.current_thread() is not threading.main_thread():
        return
    # Who is started in the background of a shell ignores it, and so would all that we start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> object:
    """Give a test on a busy machine the more time before it is said to hang."""
    seconds = allowed(settings.timeout)
    return pytest_timeout.pytest_timeout_set_timer(item, settings._replace(timeout=seconds))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the nightly ones to who asks for them, and note requirements in the report."""
    if "nightly" not in config.option.markexpr:
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in nightly]
    for item in items:  # `make traceability` reads them
        for marker in item.iter_markers("req"):
            item.user_properties.extend(("req", number) for number in marker.args)
