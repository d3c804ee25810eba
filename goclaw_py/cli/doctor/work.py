"""Checks of the running gateway, and of jobs and messages that failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from goclaw_py.cli.doctor.finding import DoctorFacts, Finding
from goclaw_py.config import Settings, accounts, job_profile
from goclaw_py.config.secrets import secret_files
from goclaw_py.core.display_names import short_id
from goclaw_py.core.messages import Target
from goclaw_py.core.session_keys import CONSOLE
from goclaw_py.schedule.jobs.models import Job, JobState
from goclaw_py.scheduler.views import GatewayStatus
from goclaw_py.web.sockets import socket_path

_NAMED: Final = 5


def check_gateway(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that a gateway is running."""
    path = socket_path(facts.settings.state_folder)
    if isinstance(facts.gateway, str):
        yield Finding("gateway", facts.gateway, "see its log; restart it if it hangs")
    elif facts.gateway is not None:
        yield Finding("gateway", f"running, socket {path}")
    else:
        yield Finding("gateway", "not running", "goclaw run", is_hint=True)


def check_release(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the running gateway has the installed release."""
    ours = facts.machine.release
    if facts.gateway is None or isinstance(facts.gateway, str):
        yield Finding("release", ours)
        return
    theirs = facts.gateway.release
    cure = "restart the gateway" if theirs != ours else ""
    fact = f"the gateway runs {theirs}, but {ours} is installed" if cure else ours
    yield Finding("release", fact, cure, is_hint=True)


def check_age(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the settings have not changed since the start, and that edits have an effect."""
    if facts.gateway is None or isinstance(facts.gateway, str):
        yield Finding("settings in use", "no gateway is running")
        return
    newer = _newer_files(facts.settings, facts.gateway)
    changes = f"changed since the gateway started: {', '.join(newer)}"
    fact = changes if newer else "same as in the file"
    cure = "restart the gateway, so that it reads them" if newer else ""
    yield Finding("settings in use", fact, cure, is_hint=True)
    for warning in facts.gateway.warnings:
        if warning.code == "gateway.setting_edit":
            yield Finding("settings in use", str(warning), warning.command, is_hint=True)


def _newer_files(settings: Settings, gateway: GatewayStatus) -> list[str]:
    """Return the files with settings that were changed since the start of a gateway."""
    started = gateway.started_at.timestamp()
    files = filter(None, {settings.file, *secret_files(settings)})
    return sorted(str(one) for one in files if one.exists() and one.stat().st_mtime > started)


def was_accepted(facts: DoctorFacts) -> bool:
    """Return whether the running gateway has started with these files.

    Then what they lack came from variables which this shell does not have, as with systemd.
    """
    gateway = facts.gateway
    return isinstance(gateway, GatewayStatus) and not _newer_files(facts.settings, gateway)


def check_jobs(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that jobs can run and deliver their results (SPEC CRON-7, OPS-4)."""
    if facts.work is None:
        return
    problems = [found for job in facts.work.jobs if (found := _problem(facts, job))]
    for job, fact, cure in problems[:_NAMED]:
        yield Finding(f"job {job.spec.slug}", fact, cure, is_hint=True)
    if len(problems) > _NAMED:
        rest = f"{len(problems) - _NAMED} more jobs have problems"
        yield Finding("jobs", rest, "goclaw jobs list --all", is_hint=True)
    if not problems:
        yield Finding("jobs", f"{len(facts.work.jobs)}, no problems")


def _problem(facts: DoctorFacts, job: Job) -> tuple[Job, str, str] | None:
    job_id = short_id(job.id)
    if job.state in (JobState.DISABLED, JobState.FAILED):
        why = " ".join(job.last_error.split())[:120] or "reason unknown"
        cure = f"goclaw jobs runs {job_id}, then goclaw jobs resume {job_id}"
        return job, f"{job.state.value}: {why}", cure
    if job.state is not JobState.ACTIVE:
        return None
    if not job_profile(facts.settings, facts.env).enabled:
        return job, "does not run: jobs are turned off", "set scheduler.enabled = true"
    if job.spec.agent not in facts.settings.agents:
        cure = f"goclaw jobs edit {job_id} --agent NAME"
        return job, f"agent {job.spec.agent} does not exist", cure
    if (dead := _dead_target(facts, job)) is not None:
        return job, dead, f"goclaw jobs edit {job_id} --to TARGET"
    if job.next_run_at is None and job.running is None:
        return job, "active, but has no upcoming run", f"goclaw jobs show {job_id}"
    return None


def _dead_target(facts: DoctorFacts, job: Job) -> str | None:
    """Return why the results of a job cannot be delivered; None if they can."""
    target = job.spec.target
    if not isinstance(target, Target) or target.channel == CONSOLE:
        return None
    places = {(one.channel, one.name) for one in accounts(facts.settings)}
    if (target.channel, target.account) not in places:
        return f"its target {target.channel}/{target.account} is not configured"
    assert facts.work is not None
    for chat in facts.work.chats:
        if (chat.channel, chat.account, chat.chat) == (
            target.channel,
            target.account,
            target.chat,
        ) and chat.gone:
            return f"cannot write to its target, chat {target.chat}: {chat.gone}"
    return None


def check_deliveries(facts: DoctorFacts) -> Iterator[Finding]:
    """Check for outgoing messages that could not be delivered."""
    if facts.work is None:
        return
    dead = facts.work.dead
    cure = (
        "goclaw deliveries list --state failed; goclaw deliveries retry ID, or drop ID"
        if dead
        else ""
    )
    fact = f"{dead} could not be delivered" if dead else "none failed"
    yield Finding("deliveries", fact, cure, is_hint=True)


def check_unanswered(facts: DoctorFacts) -> Iterator[Finding]:
    """Check for incoming messages that failed."""
    if facts.work is None:
        return
    count = facts.work.unanswered
    cure = (
        "goclaw deliveries incoming list; goclaw deliveries incoming retry ID, or drop ID"
        if count
        else ""
    )
    fact = f"{count} failed and got no answer" if count else "none failed"
    yield Finding("messages", fact, cure, is_hint=True)
