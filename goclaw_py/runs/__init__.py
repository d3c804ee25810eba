"""A run of an agent, for any trigger: context, events, budgets, subagents, replies.

Start at ``agent_executor``. ``turn`` says what is run, ``run_recorder`` collects what the run does,
``streaming_reply`` shows a reply while it is written, ``replies`` formats the final one,
``run_persistence`` stores the end, ``event_broker`` publishes events to subscribers.
"""
