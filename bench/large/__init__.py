"""How fast the dashboard is over a large database."""
