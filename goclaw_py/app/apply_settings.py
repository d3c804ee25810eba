"""Applies edited settings to the parts of a running gateway (SPEC OPS-11).

The parts look up their mappings at each use, so the values in these are replaced. Nothing else
changes a mapping after the start.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from goclaw_py.agents import build_agent
from goclaw_py.agents.models import unusable
from goclaw_py.agents.spec import AgentSpec
from goclaw_py.app.gateway_config import agent_limits, budgets, heartbeat_setup, language_models
from goclaw_py.app.parts import agent_specs, api_keys, chat_rules, close_part
from goclaw_py.app.warm_up import warm_up
from goclaw_py.config.models import Settings
from goclaw_py.core.concurrency import BackgroundTasks
from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.gateway.container import Container
from goclaw_py.gateway.dependencies import GatewayDependencies
from goclaw_py.runs.agent_loop import AgentLoop
from goclaw_py.scheduler.operator_warnings import OperatorWarning

K = TypeVar("K")
V = TypeVar("V")


class SettingsApplier:
    """Knows which part of a gateway depends on which setting.

    Args:
        settings: Those from which the parts were built.
        deps: The dependencies of the container; their mappings are dictionaries.
    """

    def __init__(self, settings: Settings, deps: GatewayDependencies, container: Container) -> None:
        self.models = _models(settings)
        """The model of each agent, for people."""
        self._current = settings
        self._deps = deps
        self._container = container
        # Read once: a file that is unreadable for a moment must not make an edit fail.
        self._keys = api_keys(settings)
        self._specs = agent_specs(settings, self._keys)
        self.unusable = _unusable(self._specs)
        """Why an agent cannot ask its model, and what to do."""
        self._replaced: list[tuple[AgentLoop, frozenset[RunId]]] = []
        self._has_new_plans = False
        self._tasks = BackgroundTasks("settings")

    def warnings(self) -> Iterator[OperatorWarning]:
        """Return a warning for each agent that cannot ask its model."""
        for agent, (problem, cure) in self.unusable.items():
            yield OperatorWarning(
                "gateway.model",
                f"Agent {agent}",
                f"cannot ask {self.models[agent]}: {problem}; {cure}, and restart",
                "/health#providers",
                "goclaw doctor",
            )

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Return a function that applies settings at once; it does not fail.

        Raises ``SettingError`` for what only the parts can validate.
        """
        specs = agent_specs(settings, self._keys)
        loops = {
            name: build_agent(spec) for name, spec in specs.items() if spec != self._specs[name]
        }
        trusted = {place: channel.trusted for place, channel in self._deps.channels.items()}
        rules = chat_rules(settings, trusted)
        heartbeats = heartbeat_setup(settings)

        def apply() -> None:
            deps, container = self._deps, self._container
            self._resize(settings)
            container.policies.replace_rules(rules)
            _refill(deps.limits, budgets(settings))
            _refill(deps.models, language_models(settings))
            windows = {AgentName(name): a.context_window for name, a in settings.agents.items()}
            _refill(deps.context_windows, windows)
            self._has_new_plans |= heartbeats.plans != deps.heartbeats.plans
            _refill(deps.heartbeats.policies, heartbeats.policies)
            _refill(deps.heartbeats.plans, heartbeats.plans)
            self._replace_agents(loops)
            _refill(self.models, _models(settings))
            self.unusable = _unusable(specs)
            self._current, self._specs = settings, specs

        return apply

    def _resize(self, settings: Settings) -> None:
        dispatcher, before = self._container.dispatcher, self._current
        for lane, size in settings.lane_sizes.items():
            # One that was resized by hand keeps its size until its setting changes.
            if size != before.lane_sizes[lane]:
                dispatcher.resize_lane(lane, size)
        for key, agent in settings.agents.items():
            if agent.max_concurrent != before.agents[key].max_concurrent:
                dispatcher.limit_agent(AgentName(key), agent.max_concurrent)
        _refill(self._deps.jobs.limits, agent_limits(settings))

    def _replace_agents(self, loops: Mapping[AgentName, AgentLoop]) -> None:
        runs = self._container.dispatcher.runs()
        for name, loop in loops.items():
            using = frozenset(one.id for one in runs if one.agent == name and one.waits_for is None)
            self._replaced.append((self._deps.agents[name], using))
            self._tasks.go(warm_up(name, loop))
        _refill(self._deps.agents, {**self._deps.agents, **loops})

    async def finish(self) -> None:
        """Plan heartbeats again, and close replaced agents that no run uses.

        Raises ``StoreUnavailable``; call it again then.
        """
        if self._has_new_plans:
            await self._container.heartbeats.plan()
            self._has_new_plans = False
        if not self._replaced:
            return
        running = {run.id for run in self._container.dispatcher.runs()}
        unused = [loop for loop, using in self._replaced if not using & running]
        self._replaced = [one for one in self._replaced if one[1] & running]
        await asyncio.gather(*map(close_part, unused))

    async def close(self) -> None:
        """Close all replaced agents: the gateway ends."""
        replaced, self._replaced = self._replaced, []
        await asyncio.gather(*(close_part(loop) for loop, _ in replaced))


def _models(settings: Settings) -> dict[AgentName, str]:
    return {AgentName(name): agent.model for name, agent in settings.agents.items()}


def _unusable(specs: Mapping[AgentName, AgentSpec]) -> dict[AgentName, tuple[str, str]]:
    found = {
        name: unusable(spec.model, (spec.api_key, spec.base_url), os.environ, f"agents.{name}")
        for name, spec in specs.items()
    }
    return {name: problem for name, problem in found.items() if problem is not None}


def _refill(mapping: Mapping[K, V], values: Mapping[K, V]) -> None:
    """Replace all values of a mapping that the parts of the gateway share."""
    assert isinstance(mapping, dict)
    found = dict(values)
    mapping.clear()
    mapping.update(found)
