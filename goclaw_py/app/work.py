"""Create the work sources from the settings (SPEC CRON-18)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from goclaw_py.config import source_token
from goclaw_py.config.models import Settings
from goclaw_py.config.work_sources import WorkSourceSettings
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.jobs import WorkSource
from goclaw_py.ports.store import WorkStore
from goclaw_py.sources import TableSource


def build_sources(
    settings: Settings, store: WorkStore, clock: Clock, env: Mapping[str, str]
) -> dict[str, WorkSource]:
    """Create all sources, by name. Raises ``SettingError`` for a missing token."""
    return {
        name: _github(settings, name, section, clock, env)
        if section.kind == "github"
        else TableSource(
            store,
            clock,
            section.queue or name,
            forgotten_after=timedelta(seconds=section.forgotten_after_s),
        )
        for name, section in settings.sources.items()
    }


def _github(
    settings: Settings,
    name: str,
    section: WorkSourceSettings,
    clock: Clock,
    env: Mapping[str, str],
) -> WorkSource:
    # Imported here, so that the HTTP client is loaded only if it is used.
    from goclaw_py.sources.github import GitHubSource, IssueRules  # noqa: PLC0415
    from goclaw_py.sources.github_http import RepositoryAddress  # noqa: PLC0415

    token = source_token(settings, name, env)
    assert token is not None
    assert section.repo is not None
    place = RepositoryAddress(section.repo, token.get_secret_value(), section.base_url.rstrip("/"))
    rules = IssueRules(
        label=section.label,
        claim_label=section.claim_label,
        failed_label=section.failed_label,
        close=section.close,
        forgotten_after=timedelta(seconds=section.forgotten_after_s),
    )
    return GitHubSource(place, rules, clock)
