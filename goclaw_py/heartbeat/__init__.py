"""Heartbeats: an agent looks at its checklist from time to time and speaks only if it must.

Start at ``decisions`` (pure: does a due run happen?) and ``service`` (what API, CLI, chat and
tools call). ``poller`` claims due runs, ``executor`` runs the agent, ``execution_ends`` stores the
end, ``alerts`` sends what needs attention to the chat that ``alert_targets`` finds.
"""
