"""Incoming messages: from a channel to a run, and everything that may stop them.

Start at ``ingestion``, which admits, stores and confirms what channels deliver. ``mailbox`` has the
messages of this process and their states. ``chat_run`` executes a turn, ``command_handlers``
answers commands, ``cancellation`` carries out /stop, ``provider_outage`` holds messages while a
provider is down.
"""
