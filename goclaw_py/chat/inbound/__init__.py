"""Incoming messages: from a channel to a run.

Start at ``ingestion``, which admits, stores and confirms what channels deliver. ``mailbox`` has the
messages of this process and their states. ``chat_run`` executes a turn, ``provider_outage`` holds
messages while a provider is down.
"""
