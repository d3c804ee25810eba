"""The gateway itself: ``init``, ``run``, ``service``, ``config``, ``nodes`` and others."""
