"""Jobs as seen from another process: ``JobService`` over the gateway's socket."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from goclaw_py.cli.client.ask import Params, RequestSender, given
from goclaw_py.cli.client.refusals import NotAccepted
from goclaw_py.common.clock import SystemClock
from goclaw_py.jobs.execution_models import JobStats, LoggedOccurrence, OccurrenceStatus
from goclaw_py.jobs.job_json import job_of
from goclaw_py.jobs.models import Job, JobState
from goclaw_py.jobs.policy import Profile
from goclaw_py.jobs.schedule import upcoming
from goclaw_py.model.errors import BadJob, GoclawError
from goclaw_py.model.ids import OccurrenceId
from goclaw_py.model.pagination import Cursor
from goclaw_py.model.targets import target_text
from goclaw_py.ports.jobs import JobChange, JobDraft, Requester, RunNow, StartedNow
from goclaw_py.ports.store import JobPage, JobQuery
from goclaw_py.web.api import job_json, wire

_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class _Known:
    """Settings of the gateway for all jobs, and how far its clock is ahead of ours."""

    view: job_json.JobSettingsView
    ahead: timedelta


class RemoteJobService:
    """Implements ``ports.jobs.JobService``; every method may raise ``NoGateway``.

    What needs no waiting (``profile``, ``enabled``, ``most``) is known once anything was asked.
    """

    def __init__(self, ask: RequestSender) -> None:
        self._ask = ask
        self._known: _Known | None = None

    @property
    def profile(self) -> Profile:
        """See ``JobService``."""
        return self._view.profile

    @property
    def enabled(self) -> bool:
        """See ``JobService``."""
        return self._view.enabled

    @property
    def most(self) -> int:
        """See ``JobService``."""
        return self._view.most

    def now(self) -> datetime:
        """Return the time of the gateway; before the first request, that of this machine."""
        ahead = timedelta() if self._known is None else self._known.ahead
        return _CLOCK.now() + ahead

    async def look(self) -> None:
        """Request the settings for all jobs, unless already done."""
        if self._known is None:
            view = wire.read(job_json.JobSettingsView, await self._ask("GET", "/api/scheduler"))
            self._known = _Known(view, view.now - _CLOCK.now())

    # ------------------------------------------------------------------ making and changing

    async def create(self, draft: JobDraft, by: Requester) -> Job:
        """See ``JobService``."""
        return await self._job("POST", "/api/jobs", by, job_json.draft_json(draft))

    async def edit(self, asked: str, change: JobChange, by: Requester) -> Job:
        """See ``JobService``."""
        return await self._job("PATCH", _path(asked), by, job_json.change_json(change))

    async def delete(self, asked: str, by: Requester) -> Job:
        """See ``JobService``."""
        return await self._job("DELETE", _path(asked), by)

    async def run_now(self, asked: str, by: Requester) -> StartedNow | RunNow:
        """See ``JobService``."""
        raw = await self._request("POST", f"{_path(asked)}/run", by)
        return job_json.started_now(wire.read(job_json.RanNow, raw))

    # ------------------------------------------------------------------ looking

    async def get(self, asked: str, by: Requester) -> Job:
        """See ``JobService``."""
        return await self._job("GET", _path(asked), by)

    async def search(self, query: JobQuery, by: Requester) -> JobPage:
        """See ``JobService``."""
        raw = await self._request("GET", "/api/jobs", by, params=_params(query))
        page = wire.read(dict[str, Any], raw)
        return JobPage(tuple(job_of(one) for one in page["jobs"]), page["total"])

    async def log(
        self,
        asked: str | None,
        by: Requester,
        *,
        limit: int = 50,
        status: OccurrenceStatus | None = None,
        before: Cursor | None = None,
    ) -> list[LoggedOccurrence]:
        """See ``JobService``."""
        path = "/api/occurrences" if asked is None else f"{_path(asked)}/log"
        params = given(limit=limit, status=status, before=before)
        return wire.read(
            list[LoggedOccurrence], await self._request("GET", path, by, params=params)
        )

    async def logged(self, occurrence: OccurrenceId, by: Requester) -> LoggedOccurrence:
        """See ``JobService``."""
        path = f"/api/occurrences/{quote(occurrence, safe='')}"
        return wire.read(LoggedOccurrence, await self._request("GET", path, by))

    async def stats(self, asked: str | None, by: Requester, *, since: datetime) -> JobStats:
        """See ``JobService``."""
        path = "/api/scheduler/stats" if asked is None else f"{_path(asked)}/stats"
        params = {"since": since.isoformat()}
        return wire.read(JobStats, await self._request("GET", path, by, params=params))

    def upcoming(self, job: Job, count: int = 3) -> list[datetime]:
        """See ``JobService``. Computed here from the job and the settings."""
        if job.state is not JobState.ACTIVE or job.next_run_at is None or count < 1:
            return []
        timing = job.timing(self.profile.policy)
        return [job.next_run_at, *upcoming(timing, after=job.next_run_at, count=count - 1)]

    async def no_route(self, asked: str, by: Requester) -> str:
        """See ``JobService``."""
        raw = await self._request("GET", f"{_path(asked)}/route", by)
        return wire.read(job_json.RouteView, raw).problem

    async def preview(self, draft: JobDraft, by: Requester, count: int = 3) -> list[datetime]:
        """See ``JobService``."""
        body, params = job_json.draft_json(draft), {"count": count}
        raw = await self._request("POST", "/api/scheduler/preview", by, body, params=params)
        return wire.read(job_json.Times, raw).times

    # ------------------------------------------------------------------ zones

    async def zone(self, by: Requester) -> str:
        """See ``JobService``."""
        raw = await self._request("GET", "/api/scheduler/zone", by)
        return wire.read(job_json.ZoneView, raw).zone

    async def choose_zone(self, zone: str | None, by: Requester) -> str:
        """See ``JobService``."""
        raw = await self._request("PUT", "/api/scheduler/zone", by, job_json.ZoneBody(zone))
        return wire.read(job_json.ZoneView, raw).zone

    # ------------------------------------------------------------------ HTTP

    @property
    def _view(self) -> job_json.JobSettingsView:
        if self._known is None:
            raise GoclawError("the settings of jobs were not requested from the gateway yet")
        return self._known.view

    async def _job(self, method: str, path: str, by: Requester, body: object = None) -> Job:
        return job_of(wire.read(dict[str, Any], await self._request(method, path, by, body)))

    async def _request(
        self,
        method: str,
        path: str,
        by: Requester,
        body: object = None,
        *,
        params: Params | None = None,
    ) -> bytes:
        await self.look()
        asker = job_json.asker_params(by)
        try:
            return await self._ask(method, path, body, params={**asker, **(params or {})})
        except NotAccepted as error:
            # Raise the same error as the service does without a gateway.
            raise _bad_job(str(error)) from error


def _bad_job(sentence: str) -> BadJob:
    key, colon, allowed = sentence.partition(": ")
    return BadJob(key, allowed) if colon else BadJob("job", sentence)


def _path(asked: str) -> str:
    return f"/api/jobs/{quote(asked, safe='')}"


def _params(query: JobQuery) -> Params:
    params: dict[str, str | int | bool | list[str]] = {
        "limit": query.limit,
        "offset": query.offset,
        "name": query.name,
        "state": [state.value for state in query.states],
        "kind": list(query.kinds),
    }
    if query.owner is not None:
        params["owner"] = query.owner
    if query.agent is not None:
        params["agent"] = query.agent
    if query.notify is not None:
        params["notify"] = query.notify.value
    if query.target is not None:
        params["target"] = target_text(query.target)
    return params
