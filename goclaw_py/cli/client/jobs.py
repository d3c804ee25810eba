"""Jobs as seen from another process: ``JobService`` over the gateway's socket."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from goclaw_py.cli.client.calls import (
    Params,
    Remote,
    RequestSender,
    asker_params,
    call,
    query,
    segment,
)
from goclaw_py.core.errors import BadJob, GoclawError
from goclaw_py.core.targets import target_text
from goclaw_py.core.time.clocks import SystemClock
from goclaw_py.operations.jobs import JobChange, JobDraft, JobService, Requester
from goclaw_py.records import JobPage, JobQuery
from goclaw_py.schedule.jobs.job_json import job_of
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.schedule.jobs.policy import Profile
from goclaw_py.schedule.jobs.schedule import upcoming
from goclaw_py.web.api import job_json, wire
from goclaw_py.web.api.error_json import NotAccepted

_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class _Known:
    """Settings of the gateway for all jobs, and how far its clock is ahead of ours."""

    view: job_json.JobSettingsView
    ahead: timedelta


class RemoteJobService(Remote):
    """Implements ``operations.jobs.JobService``; every method may raise ``NoGateway``.

    What needs no waiting (``profile``, ``enabled``, ``most``) is known once anything was asked.
    """

    def __init__(self, ask: RequestSender) -> None:
        self._ask = ask
        self._known: _Known | None = None

    @property
    def profile(self) -> Profile:
        return self._view.profile

    @property
    def enabled(self) -> bool:
        return self._view.enabled

    @property
    def most(self) -> int:
        return self._view.most

    @property
    def _view(self) -> job_json.JobSettingsView:
        if self._known is None:
            raise GoclawError("the settings of jobs were not requested from the gateway yet")
        return self._known.view

    def now(self) -> datetime:
        """Return the time of the gateway; before the first request, that of this machine."""
        ahead = timedelta() if self._known is None else self._known.ahead
        return _CLOCK.now() + ahead

    async def look(self) -> None:
        """Request the settings for all jobs, unless already done."""
        if self._known is None:
            view = wire.read(job_json.JobSettingsView, await self._ask("GET", "/api/scheduler"))
            self._known = _Known(view, view.now - _CLOCK.now())

    get = call(JobService.get, "GET /api/jobs/{asked}", read=job_of)
    delete = call(JobService.delete, "DELETE /api/jobs/{asked}", read=job_of)
    run_now = call(JobService.run_now, "POST /api/jobs/{asked}/run", read=job_json.started_now)
    log = call(JobService.log, "GET /api/jobs/{asked}/log", without="/api/occurrences")
    logged = call(JobService.logged, "GET /api/occurrences/{occurrence}")
    stats = call(JobService.stats, "GET /api/jobs/{asked}/stats", without="/api/scheduler/stats")
    no_route = call(JobService.no_route, "GET /api/jobs/{asked}/route", key="problem")
    zone = call(JobService.zone, "GET /api/scheduler/zone", key="zone")
    choose_zone = call(JobService.choose_zone, "PUT /api/scheduler/zone", key="zone")

    async def create(self, draft: JobDraft, by: Requester) -> Job:
        body = job_json.draft_json(draft)
        return _job(await self.send("POST", "/api/jobs", body, asker_params(by)))

    async def edit(self, asked: str, change: JobChange, by: Requester) -> Job:
        path, body = f"/api/jobs/{segment(asked)}", job_json.change_json(change)
        return _job(await self.send("PATCH", path, body, asker_params(by)))

    async def search(self, query: JobQuery, by: Requester) -> JobPage:
        raw = await self.send("GET", "/api/jobs", None, {**asker_params(by), **_params(query)})
        page = wire.read(dict[str, Any], raw)
        return JobPage(tuple(job_of(one) for one in page["jobs"]), page["total"])

    async def counts(self, query: JobQuery, by: Requester) -> dict[JobState, int]:
        params = {**asker_params(by), **_params(query)}
        raw = await self.send("GET", "/api/scheduler/counts", None, params)
        return wire.read(job_json.JobCounts, raw).counts

    def upcoming(self, job: Job, count: int = 3) -> list[datetime]:
        """See ``JobService``. Computed here from the job and the settings."""
        if job.state is not JobState.ACTIVE or job.next_run_at is None or count < 1:
            return []
        timing = job.timing(self.profile.policy)
        return [job.next_run_at, *upcoming(timing, after=job.next_run_at, count=count - 1)]

    async def preview(self, draft: JobDraft, by: Requester, count: int = 3) -> list[datetime]:
        body, params = job_json.draft_json(draft), asker_params(by) | {"count": str(count)}
        return wire.read(job_json.Times, await self.send("POST", _PREVIEW, body, params)).times

    async def send(
        self, method: str, path: str, body: object = None, params: Params | None = None
    ) -> bytes:
        """Send a request, after one for the settings."""
        await self.look()
        try:
            return await self._ask(method, path, body, params)
        except NotAccepted as error:
            # Raise the same error as the service does without a gateway.
            raise _bad_job(str(error)) from error


_PREVIEW = "/api/scheduler/preview"


def _job(raw: bytes) -> Job:
    return job_of(wire.read(dict[str, object], raw))


def _bad_job(sentence: str) -> BadJob:
    key, colon, allowed = sentence.partition(": ")
    return BadJob(key, allowed) if colon else BadJob("job", sentence)


def _params(asked: JobQuery) -> Params:
    target = None if asked.target is None else target_text(asked.target)
    return query(
        limit=asked.limit,
        offset=asked.offset,
        name=asked.name,
        owner=asked.owner,
        agent=asked.agent,
        notify=asked.notify,
        target=target,
    ) | {"state": [state.value for state in asked.states], "kind": list(asked.kinds)}
