"""The schedule API of *caco*, for its clients (SPEC CRON-19)."""
