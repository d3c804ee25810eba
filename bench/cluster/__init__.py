"""Several gateways on one database."""
