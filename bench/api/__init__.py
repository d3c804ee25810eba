"""What lists of the HTTP API cost when there is much in them."""
