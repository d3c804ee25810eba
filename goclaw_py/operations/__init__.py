"""What operators and tools may ask of a gateway: protocols, their requests and their answers.

``control`` has most of them; ``jobs``, ``heartbeat``, ``settings``, ``audit`` and ``web_access``
are its parts. ``gateway`` implements them; ``web``, ``cli`` and tools call them.
"""
