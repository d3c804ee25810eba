"""Checks of agents: models, keys, budgets, programs, instructions, heartbeats."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import typer

from goclaw_py.agents.models import (
    Provider,
    find_url,
    is_priced,
    read_model,
    unusable,
)
from goclaw_py.cli import composition
from goclaw_py.cli.doctor.finding import DoctorFacts, Finding
from goclaw_py.cli.doctor.work import was_accepted
from goclaw_py.config import Settings, api_key, heartbeat_policy, switched_off
from goclaw_py.config.agents import DEFAULT_DAY_USD, DayBudget
from goclaw_py.core.errors import AgentError, GoclawError, SettingError
from goclaw_py.core.ids import AgentName
from goclaw_py.core.net.proxies import proxy_for
from goclaw_py.core.time.durations import in_words
from goclaw_py.runs.instructions import Instructions
from goclaw_py.schedule.heartbeat.checklist.intervals import FORMS
from goclaw_py.schedule.heartbeat.checklist_files import ChecklistFiles, ChecklistProblem
from goclaw_py.schedule.heartbeat.models import Skip
from goclaw_py.schedule.heartbeat.target import heartbeat_target_text

_SERVERS: Final = {
    Provider.ANTHROPIC: "https://api.anthropic.com",
    Provider.OPENAI: "https://api.openai.com",
    Provider.OPENAI_CHAT: "https://api.openai.com",
    Provider.OPENAI_RESPONSES: "https://api.openai.com",
}
"""Where their libraries find them. Of others only the scheme is known here."""
_CORRECT: Final = "fix this setting"
_UNITS: Final = ("turns", "tokens", "usd")


def check_parts(facts: DoctorFacts) -> Iterator[Finding]:
    """Check the settings that only a channel or an agent itself can validate."""
    settings = facts.settings
    try:
        asyncio.run(composition.check_parts(settings))
    except GoclawError as error:
        fact, cure = str(error), _CORRECT
        if was_accepted(facts):
            fact, cure = "running in the gateway, whose variables this shell does not have", ""
        yield Finding("channels and agents", fact, cure)
        return
    if failed := asyncio.run(composition.check_imports(settings)):
        cure = "install goclaw_py again, in an environment of its own"
        yield from (Finding(subject, error, cure) for subject, error in failed)
        return
    names = [*settings.channels, *(f"agent {name}" for name in settings.agents)]
    yield Finding("channels and agents", ", ".join(names))


def check_keys(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that every model of an agent has its library, and its API key or base URL."""
    for name, agent in facts.settings.agents.items():
        yield check_model(facts.settings, facts.env, name)
        for other in agent.fallback:
            yield _check_model(facts.env, f"agent {name}, fallback", other, (None, None))


def check_model(settings: Settings, env: Mapping[str, str], name: str) -> Finding:
    """Check that the model of an agent has its library, and its API key or base URL."""
    subject, agent = f"agent {name}", settings.agents[name]
    try:
        key = api_key(settings, AgentName(name), env)
    except SettingError as error:
        return Finding(subject, str(error), _CORRECT)
    given = None if key is None else key.get_secret_value()
    return _check_model(env, subject, agent.model, (given, agent.base_url), f"agents.{name}")


def warn_of_model(settings: Settings, env: Mapping[str, str], name: str) -> None:
    """Print a warning if the model of an agent lacks its key, address or library."""
    found = check_model(settings, env, name)
    if found.cure:
        typer.echo(f"warning: {found.fact}, as seen from here; {found.cure}", err=True)


def _check_model(
    env: Mapping[str, str],
    subject: str,
    model: str,
    given: tuple[str | None, str | None],
    place: str = "",
) -> Finding:
    """Check one model. ``given``: its API key and base URL in the settings at ``place``."""
    read = read_model(model)
    if read is None:
        # ``check_parts`` has reported the name of the model.
        return Finding(subject, model)
    if (problem := unusable(model, given, env, place)) is not None:
        fact, cure = problem
        return Finding(subject, f"{model}: {fact}", cure)
    provider, base_url = read[0], given[1]
    server = find_url(provider, base_url, env) or _SERVERS.get(provider, "https://")
    try:
        proxy = proxy_for(server, env)
    except ValueError as error:
        return Finding(subject, f"{model}: {error}", "correct this variable")
    return Finding(subject, model if proxy is None else f"{model}, through the proxy {proxy}")


def check_budgets(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that budgets can be enforced: prices are known, limits reachable (SPEC AGENT-5)."""
    problems = [*_unpriced(facts), *_hidden_limits(facts), *_estimated(facts)]
    yield from problems or [Finding("budgets", "all limits can be enforced")]
    for name, agent in facts.settings.agents.items():
        if agent.has_default_day:
            fact = (
                f"{DEFAULT_DAY_USD} USD a day, the default (agents.{name}.budget.day.usd; 0: none)"
            )
            yield Finding(f"agent {name}, budget of a day", fact)


def _unpriced(facts: DoctorFacts) -> Iterator[Finding]:

    for name, agent in facts.settings.agents.items():
        budget = agent.budget
        parts = (("", budget), ("session_day.", budget.session_day), ("day.", budget.day))
        in_usd = [f"{part}usd" for part, one in parts if one.usd]
        for place, model in enumerate((agent.model, *agent.fallback)):
            read = read_model(model)
            if read is None or not in_usd:
                continue
            url = find_url(read[0], None if place else agent.base_url, facts.env)
            if not is_priced(*read, url):
                limits = ", ".join(in_usd)
                fact = f"the price of {model} is not known, so {limits} cannot be enforced"
                cure = f"also set agents.{name}.budget.tokens"
                yield Finding(f"agent {name}, budget", fact, cure, is_hint=bool(budget.tokens))


def _estimated(facts: DoctorFacts) -> Iterator[Finding]:
    names = () if isinstance(facts.database, str) else facts.database.estimated
    for name in names:
        fact = "its provider does not report the tokens of each response; its limits are estimates"
        cure = f"leave some room in agents.{name}.budget"
        yield Finding(f"agent {name}, budget", fact, cure, is_hint=True)


def _hidden_limits(facts: DoctorFacts) -> Iterator[Finding]:
    """Find limits that are never reached, because a wider limit is smaller."""
    for name, agent in facts.settings.agents.items():
        budget = agent.budget
        levels: list[tuple[str, DayBudget]] = [
            ("", budget),
            ("session_day.", budget.session_day),
            ("day.", budget.day),
        ]
        for number, (part, one) in enumerate(levels):
            for wide, other in levels[number + 1 :]:
                for unit in _UNITS:
                    limit, above = getattr(one, unit), getattr(other, unit)
                    if limit and above and limit > above:
                        fact = f"{part}{unit} = {limit} is never reached: {wide}{unit} = {above}"
                        cure = f"set agents.{name}.budget.{part}{unit} to {above} or less"
                        yield Finding(f"agent {name}, budget", fact, cure, is_hint=True)


# ---------------------------------------------------------------------------- programs


def check_programs(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the programs of agents with model "command" exist."""
    is_used = False
    for name, agent in facts.settings.agents.items():
        if agent.model != "command" or not agent.command.run:
            continue
        is_used = True
        place = f"agents.{name}.command.run"
        folder = facts.settings.workspace(AgentName(name))
        yield _check_program(facts, f"agent {name}, program", agent.command.run[0], folder, place)
    if not is_used:
        yield Finding("programs", "no agent uses a program")


def check_tool_servers(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the programs of MCP tool servers exist (SPEC AGENT-6)."""
    is_used = False
    for name, agent in facts.settings.agents.items():
        for server, given in agent.mcp.items():
            is_used = True
            subject = f"agent {name}, tools of {server}"
            if given.url:
                found = Finding(subject, "remote server, contacted at the first run")
            else:
                place = f"agents.{name}.mcp.{server}.command"
                found = _check_program(facts, subject, given.command[0], Path.cwd(), place)
            yield replace(found, fact=f"{found.fact}; trusted") if given.trusted else found
    if not is_used:
        yield Finding("tool servers", "none")


def _check_program(
    facts: DoctorFacts, subject: str, program: str, folder: Path, place: str
) -> Finding:
    is_path = "/" in program
    found = shutil.which(
        str(folder / program) if is_path else program, path=facts.env.get("PATH", "")
    )
    if found is not None:
        return Finding(subject, found)
    if is_path and (folder / program).is_file():
        return Finding(subject, f"{program} is not executable", f"chmod +x {folder / program}")
    where = f"in {folder}" if is_path else "in PATH"
    return Finding(subject, f"{program} not found {where}", f"install it, or fix {place}")


# ---------------------------------------------------------------------------- what they are told


def check_instructions(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the instruction files of agents exist."""
    settings = facts.settings
    names = [AgentName(name) for name in settings.agents]
    read = Instructions(
        {name: settings.workspace(name) for name in names},
        {name: settings.agents[name].instructions for name in names},
    )
    for name in names:
        subject = f"agent {name}, instructions"
        try:
            texts = asyncio.run(read.read(name))
        except AgentError as error:
            cure = f"create the file, or fix agents.{name}.instructions"
            yield Finding(subject, str(error), cure)
        else:
            count = sum(map(len, texts))
            yield Finding(subject, f"{count:,} characters" if texts else "none")


def check_heartbeats(facts: DoctorFacts) -> Iterator[Finding]:
    """Show the heartbeat of each agent, and check that its alert target is enabled (SPEC HB-8)."""
    settings = facts.settings
    for name in map(AgentName, settings.agents):
        policy = heartbeat_policy(settings, name, facts.env)
        subject = f"agent {name}, heartbeat"
        if policy.interval is None:
            yield Finding(subject, "off")
            continue
        hours = "" if policy.hours is None else f", {policy.hours}"
        to = heartbeat_target_text(policy.target)
        fact = f"{in_words(policy.interval)}{hours}, target {to}"
        off = switched_off(settings, policy.target)
        cure = f"set {off} = true, or use another target" if off else ""
        yield Finding(subject, f"{fact}, which is disabled" if off else fact, cure)


def check_checklists(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that HEARTBEAT.md of each agent is readable, and its intervals are understood."""
    settings = facts.settings
    names = [AgentName(name) for name in settings.agents]
    lists = ChecklistFiles({name: settings.workspace(name) for name in names})
    for name in names:
        if heartbeat_policy(settings, name, facts.env).interval is None:
            continue
        subject = f"agent {name}, checklist"
        file = settings.workspace(name) / "HEARTBEAT.md"
        found = asyncio.run(lists.read(name))
        if isinstance(found, ChecklistProblem):
            is_missing = found.skip is Skip.NO_FILE
            cure = f"create {file}; without it heartbeat runs are skipped"
            if not is_missing:
                cure = f"fix {file}"
            fact = found.detail or f"{file} does not exist"
            yield Finding(subject, fact, cure, is_hint=is_missing)
            continue
        wrong = [item for item in found.items if item.is_misread]
        for item in wrong:
            cure = f"use one of these forms: {FORMS}"
            fact = f"item {item.number}: the interval is not understood: {item.text[:60]}"
            yield Finding(subject, fact, cure, is_hint=True)
        if not wrong:
            many = len(found.items)
            yield Finding(subject, "empty" if found.is_empty else f"{many} open items")
