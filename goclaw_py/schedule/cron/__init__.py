"""Cron expressions (SPEC CRON-3): ``parser`` reads them, ``expression`` finds the times."""
