"""Whoever stops a gateway waits long enough for it (SPEC OPS-7)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from goclaw_py.config import load
from tests.deploy.places import ROOT, container, pod, service, unit


def compose_s() -> float:
    found = re.fullmatch(r"(\d+)s", service("goclaw")["stop_grace_period"])
    assert found is not None
    return float(found[1])


def systemd_s() -> float:
    (seconds,) = unit("TimeoutStopSec")
    return float(seconds)


def kubernetes_s() -> float:
    """What is left when preStop has ended: both have to fit."""
    word, seconds = container()["lifecycle"]["preStop"]["exec"]["command"]
    assert word == "sleep"
    return float(pod()["terminationGracePeriodSeconds"]) - float(seconds)


def guide_s() -> float:
    """Of the gateway that is run with Docker alone."""
    text = Path(ROOT, "docs/guide/deployment.md").read_text("utf-8")
    (found,) = re.findall(r"--stop-timeout (\d+)", text)
    return float(found)


@pytest.mark.parametrize("given_s", [compose_s, systemd_s, kubernetes_s, guide_s])
def test_a_gateway_is_not_killed_before_its_own_limits_are_over(
    given_s: Callable[[], float],
) -> None:
    settings = load(env={"GOCLAW_HOME": "/nowhere"})
    needed_s = settings.shutdown.wait_s + settings.runs.cancel_grace_s + 15
    assert given_s() >= needed_s
