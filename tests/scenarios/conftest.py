from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.world import World, world


@pytest.fixture(scope="session")
def nightrelay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One stack for all scenarios: each submits runs of its own."""
    with world(tmp_path_factory.mktemp("nightrelay")) as running:
        yield running
