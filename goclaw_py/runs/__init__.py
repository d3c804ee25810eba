"""One run of an agent, whoever asked for it: context, events, budgets, subagents, replies.

Start at ``agent_executor``. ``turn`` says what is run, ``run_recorder`` keeps what the run does,
``streaming_reply`` shows a reply that grows, ``replies`` writes the final one,
``run_persistence`` stores the end, ``event_broker`` publishes events to those who follow a run.
"""
