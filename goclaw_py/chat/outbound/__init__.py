"""Outgoing messages: one sender for each chat, within the rate limits of its channel.

Start at ``outbox_sender``. ``rate_limit`` computes when a chat may be written to and
``rate_limiter`` waits for it; ``ok_token`` finds HEARTBEAT_OK in a reply; ``texts`` has the
sentences for chats.
"""
