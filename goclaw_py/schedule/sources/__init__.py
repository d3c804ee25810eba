"""Sources of work items for jobs: implementations of ``jobs.work_items.WorkSource`` (CRON-18).

GitHub is not imported here: most gateways do not need its HTTP client.
"""

from goclaw_py.schedule.sources.table import TableSource

__all__ = ["TableSource"]
