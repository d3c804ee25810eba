"""What tests of the application share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def log_as_before() -> Iterator[None]:
    """The root of all loggers has no handlers; in the end it is as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()
    yield
    logging.captureWarnings(capture=False)
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
