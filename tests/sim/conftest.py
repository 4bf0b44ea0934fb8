"""The seed of the tests that look at one property in few worlds."""

import pytest

from tests.sim.seeds import FIXED_SEED, fresh_seed


@pytest.fixture
def base_seed(request):
    """The fixed one in CI, a fresh one by hand."""
    fresh = fresh_seed()
    chosen = FIXED_SEED if fresh is None else fresh
    request.node.user_properties.append(("base seed", chosen))
    print(f"base seed {chosen}")  # noqa: T201 - shown with a failure
    return chosen
