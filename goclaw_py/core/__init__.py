"""Values that all share, and small tools without knowledge of the product.

``messages``, ``ids``, ``outcomes``, ``run_events`` and ``errors`` are what features speak of;
``time``, ``net``, ``markdown`` and ``workspace`` are what they work with.
"""
