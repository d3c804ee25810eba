"""Facts that a conversation must not forget."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, model_validator

from goclaw_py.model.errors import ToolFailed
from goclaw_py.ports.tools import ToolContext
from goclaw_py.tools.arguments import NOT_BLANK, Arguments, one_line
from goclaw_py.tools.tool import Tool

MAX_FACTS: Final = 50
MAX_FACT_CHARS: Final = 500

Facts = tuple[str, ...]


class Fact(Arguments):
    """Arguments of ``pin_fact``."""

    text: Annotated[str, Field(max_length=MAX_FACT_CHARS), NOT_BLANK] = Field(
        description="The fact in one sentence, such as: The user's daughter is called Mia."
    )


class PinFact(Tool[Fact]):
    """Adds a fact. To do it twice is the same as to do it once, so it has no side effects."""

    name = "pin_fact"
    description = (
        "Remember a fact for the rest of this conversation, even when its older messages are no "
        "longer visible. Use it for what the user says about themselves and for decisions."
    )
    side_effects = False
    arguments = Fact

    async def call(self, arguments: Fact, here: ToolContext) -> str:
        """Add it to the facts of the conversation."""
        fact = one_line(arguments.text)

        def add(facts: Facts) -> Facts:
            return facts if fact in facts or len(facts) >= MAX_FACTS else (*facts, fact)

        facts = await here.pins.change(add)
        if fact not in facts:
            raise ToolFailed(
                f"{MAX_FACTS} facts are remembered, which is the most; unpin one first"
            )
        return f"Remembered as fact {facts.index(fact) + 1} of {len(facts)}."


class Pinned(Arguments):
    """Arguments of ``unpin_fact``."""

    number: int | None = Field(default=None, ge=1, description="The number of the fact, from 1.")
    text: str | None = Field(
        default=None, max_length=MAX_FACT_CHARS, description="Instead of the number: its text."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Pinned:
        if (self.number is None) == (self.text is None):
            raise ValueError("needs either number or text")
        return self


class UnpinFact(Tool[Pinned]):
    """Removes a fact."""

    name = "unpin_fact"
    description = "Forget a fact that was remembered by pin_fact."
    side_effects = False
    arguments = Pinned

    async def call(self, arguments: Pinned, here: ToolContext) -> str:
        """Take it out of the facts of the conversation."""
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
        return "no fact is remembered"
    return "there are:\n" + "\n".join(f"{n}. {fact}" for n, fact in enumerate(facts, 1))
