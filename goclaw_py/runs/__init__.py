"""A run of an agent, for any trigger: context, events, budgets, subagents, replies.

Start at ``agent_executor``. ``turn`` says what is run, ``run_recorder`` collects what the run does,
``replies`` shows a reply while it is written and formats the final one,
``run_persistence`` stores the end, ``events`` publishes events to subscribers.
"""
