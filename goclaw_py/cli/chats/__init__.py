"""The ``chat``, ``send``, ``sessions``, ``groups`` and ``pairing`` commands."""
