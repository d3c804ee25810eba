"""What comes in: from a channel to a run, and everything that may stop it on the way.

Start at ``ingestion``: it admits, stores and confirms what channels bring. ``chat_run`` runs it.
``command_handlers`` answers commands, ``cancellation`` carries out /stop, ``provider_outage``
keeps messages while a provider is down, ``uncommitted``, ``claimed`` and ``blocked`` know which
messages this process has.
"""
