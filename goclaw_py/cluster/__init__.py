"""Several nodes on one database: leases, recovery after a node, calls between nodes.

Start at ``membership``. ``rpc`` calls another node, ``lane_permits`` shares the slots of a lane.
"""
