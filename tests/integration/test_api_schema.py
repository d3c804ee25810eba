"""The HTTP API keeps what its description promises, whatever it is asked (SPEC OPS-2, CRON-19).

schemathesis makes the requests, good and bad ones, from the description itself. Its pytest plugin
is switched off: it would be imported for every test of this repository.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.schedule.jobs.models import FixedMessage, Prompt
from goclaw_py.schedule.jobs.schedule import Cron, Every
from goclaw_py.web.api.routes import make_api
from tests.unit.web.fake_health import FakeHealth
from tests.unit.web.fake_terminals import FakeTerminals
from tests.unit.web.fakes import FakeControl

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.schemas import BaseSchema

REFUSALS = [400, 403, 404, 405, 409, 413, 415, 422]
EXAMPLES = int(os.environ.get("GOCLAW_API_EXAMPLES", "4"))
"""Of each kind for each operation: all of them take about half a minute."""


def _control() -> FakeControl:
    """Something to be found behind every path."""
    control = FakeControl()

    async def fill() -> None:
        for slug, draft in (
            ("daily-standup", JobDraft(Cron("0 9 * * 1-5"), Prompt("x", "m:n"))),
            ("standup", JobDraft(Every(timedelta(hours=2)), FixedMessage("tea"))),
        ):
            await control.jobs.create(
                JobDraft(draft.schedule, draft.payload, slug=slug), Requester(None)
            )

    asyncio.run(fill())
    return control


@pytest.fixture(scope="module")
def schema() -> BaseSchema:
    import schemathesis

    app = make_api(_control(), FakeTerminals(), release="1.2.3", health=FakeHealth())
    # 413 refuses as well: what is wrong may also be too long.
    config = schemathesis.Config.from_dict(
        {"checks": {"negative_data_rejection": {"expected-statuses": REFUSALS}}}
    )
    app.openapi()  # it is kept: a slow machine makes it in more time than a client waits
    loaded = schemathesis.openapi.from_asgi("/openapi.json", app, config=config)
    # An event stream has no end.
    return loaded.exclude(path_regex=r"/(runs|chat/\{chat\})/events$")


def _checks() -> tuple[list[Any], list[Any]]:
    """All checks, and those that are left out."""
    from schemathesis import checks
    from schemathesis.checks import CHECKS

    checks.load_all_checks()
    # A body of the right shape may still have a cron expression that means nothing, or name a job
    # that is not there: no description can say that.
    left_out = ["positive_data_acceptance"]
    return CHECKS.get_all(), CHECKS.get_by_names(left_out)


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_answer_is_as_it_is_described(schema: BaseSchema, mode: str) -> None:
    """No request is answered by an error of the server, or by something that is not described."""
    from schemathesis import GenerationMode
    from schemathesis.core.result import Ok

    every, left_out = _checks()
    asked: Counter[str] = Counter()
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()

        @settings(
            max_examples=EXAMPLES,
            derandomize="GOCLAW_API_EXAMPLES" not in os.environ,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(GenerationMode(mode)))
        def holds(case: Case[Any]) -> None:
            asked[case.operation.label] += 1
            case.call_and_validate(checks=every, excluded_checks=left_out)

        with suppress(Unsatisfiable):
            holds()
        # There is nothing wrong that could be asked where any text may stand.
        assert asked[operation.label] or (mode == "negative" and not len(operation.body))
    assert len(asked) > (70 if mode == "positive" else 55)


def test_nothing_is_left_behind() -> None:
    assert not Path(".schemathesis").exists()
