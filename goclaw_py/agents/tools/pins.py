"""Tools that pin facts, which stay visible for the rest of a conversation."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, model_validator

from goclaw_py.agents.tools.arguments import NOT_BLANK, Arguments, one_line
from goclaw_py.agents.tools.tool import Tool
from goclaw_py.core.errors import ToolFailed
from goclaw_py.runs.toolbox import ToolContext

MAX_FACTS: Final = 50
MAX_FACT_CHARS: Final = 500

Facts = tuple[str, ...]


class Fact(Arguments):
    """Arguments of ``pin_fact``."""

    text: Annotated[str, Field(max_length=MAX_FACT_CHARS), NOT_BLANK] = Field(
        description="The fact in one sentence, such as: The user's daughter is called Mia."
    )


class PinFact(Tool[Fact]):
    """Adds a fact. Adding it twice has no further effect, so it has no side effects."""

    name = "pin_fact"
    description = (
        "Remember a fact for the rest of this conversation, even when older messages are no longer "
        "visible. Use it for what users say about themselves, and for decisions."
    )
    side_effects = False
    arguments = Fact

    async def call(self, arguments: Fact, here: ToolContext) -> str:
        """Add the fact to those of the conversation."""
        fact = one_line(arguments.text)

        def add(facts: Facts) -> Facts:
            return facts if fact in facts or len(facts) >= MAX_FACTS else (*facts, fact)

        facts = await here.pins.change(add)
        if fact not in facts:
            raise ToolFailed(f"{MAX_FACTS} facts are pinned, which is the maximum; unpin one first")
        return f"Remembered as fact {facts.index(fact) + 1} of {len(facts)}."


class Pinned(Arguments):
    """Arguments of ``unpin_fact``."""

    number: int | None = Field(
        default=None, ge=1, description="The number of the fact, counted from 1."
    )
    text: str | None = Field(
        default=None,
        max_length=MAX_FACT_CHARS,
        description="The text of the fact, instead of its number.",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Pinned:
        if (self.number is None) == (self.text is None):
            raise ValueError("must have either number or text")
        return self


class UnpinFact(Tool[Pinned]):
    """Removes a fact."""

    name = "unpin_fact"
    description = "Forget a fact that was stored with pin_fact."
    side_effects = False
    arguments = Pinned

    async def call(self, arguments: Pinned, here: ToolContext) -> str:
        """Remove the fact from those of the conversation."""
        number = arguments.number
        text = None if arguments.text is None else one_line(arguments.text)
        before: Facts = ()

        def remove(facts: Facts) -> Facts:
            nonlocal before
            before = facts
            return tuple(fact for at, fact in enumerate(facts, 1) if at != number and fact != text)

        after = await here.pins.change(remove)
        if len(after) == len(before):
            raise ToolFailed(f"there is no such fact; {_listed(before)}")
        return f"Forgotten: {text if number is None else before[number - 1]}"


def _listed(facts: Facts) -> str:
    if not facts:
        return "no facts are pinned"
    return "the pinned facts are:\n" + "\n".join(f"{n}. {fact}" for n, fact in enumerate(facts, 1))
