"""The ``simulate`` command: what would run when, without running it."""
