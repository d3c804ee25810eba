"""The nouns whose operations stand in a folder of their own."""

from __future__ import annotations

from typing import Final

from goclaw_py.operations.access.noun import ACCESS
from goclaw_py.operations.approvals.noun import APPROVALS
from goclaw_py.operations.audit.noun import AUDIT
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.deliveries.noun import DELIVERIES
from goclaw_py.operations.heartbeats.noun import HEARTBEATS
from goclaw_py.operations.jobs.noun import JOBS
from goclaw_py.operations.lanes.noun import LANES
from goclaw_py.operations.nodes.noun import NODES
from goclaw_py.operations.people.noun import PEOPLE
from goclaw_py.operations.runs.noun import RUNS
from goclaw_py.operations.sessions.noun import SESSIONS
from goclaw_py.operations.settings.noun import SETTINGS
from goclaw_py.operations.usage.noun import USAGE

NOUNS: Final[tuple[Noun, ...]] = (
    ACCESS,
    APPROVALS,
    AUDIT,
    DELIVERIES,
    HEARTBEATS,
    JOBS,
    LANES,
    NODES,
    PEOPLE,
    RUNS,
    SESSIONS,
    SETTINGS,
    USAGE,
)
