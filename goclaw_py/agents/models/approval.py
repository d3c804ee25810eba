"""Decides about the tool calls of a run that may continue another one (SPEC AGENT-10)."""

from __future__ import annotations

from goclaw_py.agents.approval import CALL, CallJudge, Judgement
from goclaw_py.agents.models.replay import UNKNOWN_RESULT, Replay
from goclaw_py.core.approvals import ApprovalPolicy, Decision, OnUncertain
from goclaw_py.runs.agent_loop import RunRequest
from goclaw_py.runs.toolbox import ToolSpec

HAPPENED_RESULT = (
    "The program was interrupted before it received the result of this call. A person has "
    "confirmed that the call took effect."
)


class ReplayJudge(CallJudge):
    """Judges also calls that an interrupted run has started."""

    def __init__(self, policy: ApprovalPolicy, replay: Replay, request: RunRequest) -> None:
        super().__init__(policy, can_ask=request.can_ask, is_granted=request.is_granted)
        self._replay = replay

    async def judge(self, spec: ToolSpec, call_id: str, arguments: str) -> Judgement:
        """Judge a call without a stored result."""
        if self._replay.unknown(call_id) is None:
            decision = self._replay.about_approval(call_id)
            return await self.judge_new(spec, call_id, arguments, decision)
        if spec.idempotent or not spec.side_effects:
            return CALL
        decision = self._replay.about_outcome(call_id)
        if decision is Decision.HAPPENED:
            return Judgement(result=HAPPENED_RESULT)
        on_uncertain = self.policy.on_uncertain
        if decision is Decision.AGAIN or (decision is None and on_uncertain is OnUncertain.RETRY):
            return CALL
        if decision is None and on_uncertain is OnUncertain.ASK_USER and self.can_ask:
            return Judgement(asks=self.request(spec, call_id, arguments, uncertain=True))
        return Judgement(refusal=UNKNOWN_RESULT, uncertain=True)
