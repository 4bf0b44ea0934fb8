"""What every suite shares: how hard hypothesis tries, and which requirements a test proves."""

import os

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.fixtures", "tests.support.cli_fixture"]

# From hypothesis's own default, which CI=true would replace: CI tries new examples, too.
# Slow is no failure, on a loaded machine least of all: speed lives in bench/.
for name, examples in {"dev": 100, "ci": 200, "nightly": 5000}.items():
    settings.register_profile(
        name,
        settings.get_profile("default"),
        max_examples=examples,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Write each test's requirement numbers into the junit report, for `make traceability`."""
    for item in items:
        for marker in item.iter_markers("req"):
            item.user_properties.extend(("req", number) for number in marker.args)
