"""How long the random histories are: ``GOCLAW_HYPOTHESIS=deep`` runs many more of them."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A loaded machine is slow now and then; that is no property of the code.
_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "default", max_examples=100, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile(
    "deep", max_examples=4000, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.load_profile(os.environ.get("GOCLAW_HYPOTHESIS", "default"))
