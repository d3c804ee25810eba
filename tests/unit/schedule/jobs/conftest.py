"""What tests of jobs share."""

from __future__ import annotations

import random

import pytest


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries wait 2, 4 and 8 seconds, not up to a quarter more or less."""
    monkeypatch.setattr(random, "random", lambda: 0.5)
