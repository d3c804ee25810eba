"""The ``simulate`` command: forecast runs, delays and cost without running anything."""
