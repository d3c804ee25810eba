"""The ``cron`` commands: jobs listed, shown, added, changed, imported."""
