"""Where jobs get their work from (SPEC CRON-18). They implement ``ports.jobs.WorkSource``.

GitHub is not imported here: most gateways need no HTTP client for work.
"""

from goclaw_py.sources.table import TableSource

__all__ = ["TableSource"]
