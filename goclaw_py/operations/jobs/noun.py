"""Jobs, for layers that must know of them before they load their routes, page or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.jobs.operations import JobService

JOBS: Final = Noun(
    "jobs",
    JobService,
    pages={
        Least.VIEWER: (
            "GET /api/jobs/{job}/upcoming",
            "GET /jobs",
            "GET /live/jobs",
            "GET /jobs/view",
            "GET /live/job",
            "GET /jobs/{job}",
        ),
        Least.OPERATOR: (
            "GET /jobs/new",
            "POST /jobs/new",
            "GET /jobs/preview",
            "GET /jobs/{job}/edit",
            "POST /jobs/{job}/edit",
            "POST /jobs/selected",
            "POST /jobs/{job}/{action}",
        ),
    },
    plain={
        "Cron": "expression",
        "Job": "last_status creator",
        "JobSpec": "zone session policy source",
        "Profile": "name zone",
        "Prompt": "model",
        "StartedNow": "session",
    },
    text={
        "FixedMessage": "text",
        "Job": "last_error",
        "JobSpec": "slug name",
        "LoggedOccurrence": "slug output error delivery definition",
        "Profile": "default_prompt",
        "Program": "argv",
        "Prompt": "text",
    },
    notices={
        "made": "Created.",
        "done": "Ran {}.",
        "paused": "Paused {}.",
        "resumed": "Resumed {}.",
        "job-deleted": "Deleted {}.",
    },
)
"""``GET /api/jobs/{job}/upcoming`` computes from a job and the settings, as commands do."""
