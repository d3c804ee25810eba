"""Lanes and session queues: which run starts now, which waits, which is cancelled.

Start at ``scheduler`` (the interface) and ``state_machine`` (every transition). Both are pure:
methods take ``now`` and return ``effects``. ``dispatcher`` carries them out for the gateway,
``embedded`` for other programs. The package depends on no other feature.
"""
