"""What tests of the API share."""

from __future__ import annotations

import pytest

from tests.unit.web.harness import Api


@pytest.fixture
def api() -> Api:
    return Api()
