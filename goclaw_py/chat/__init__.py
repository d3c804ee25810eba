"""What people do in chats: what comes in, commands, /stop, who may talk, and what goes out.

Start at ``channel`` (what a chat network is to us), then ``inbound.ingestion`` and
``outbound.outbox_sender``.
"""
