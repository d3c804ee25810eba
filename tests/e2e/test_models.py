"""A gateway in front of a real model client, over loopback."""

from __future__ import annotations

import json

import pytest

from tests.botapi.control import Control
from tests.e2e.loopback_model import Model, use
from tests.support.process import Home, wait_for

ANN = 1001


@pytest.mark.smoke
def test_a_model_answers_and_remembers(bot: Home, api: Control, model: Model) -> None:
    """AGENT-2, AGENT-4."""
    use(bot, model)
    bot.start()
    api.say(ANN, "say good morning")
    wait_for(lambda: api.texts(ANN) == ["good morning"], "the first answer")
    api.say(ANN, "say good night")
    wait_for(lambda: api.texts(ANN)[-1] == "good night", "the second answer")
    texts = json.dumps(model.seen()[-1]["body"]["messages"])
    assert texts.index("good morning") < texts.index("good night")


def test_stop_closes_the_stream_to_the_model(bot: Home, api: Control, model: Model) -> None:
    """CMD-4: cancellation reaches the agent loop."""
    use(bot, model)
    bot.start()
    api.say(ANN, "slow 600 0.1")
    wait_for(model.seen, "the request")
    api.say(ANN, "/stop")
    wait_for(lambda: any("Stopped." in text for text in api.texts(ANN)), "the answer to /stop")
    wait_for(lambda: model.seen()[0]["hung_up_at"], "the hang-up")
