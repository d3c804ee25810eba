"""``goclaw simulate``: the real services on simulated time (SPEC OPS-6).

Start at ``simulation``; ``runs`` and ``heartbeats`` replace the agent.
"""
