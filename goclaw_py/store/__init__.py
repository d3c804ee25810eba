"""The database behind ``records``: PostgreSQL.

Start at ``postgres.store``. SQL is in ``queries/*.sql``; rules that the stores share are in
``*rules`` and ``schedule.jobs.job_rules``; ``embedded`` runs a server of our own, ``migrate``
brings its schema up to date.
"""
