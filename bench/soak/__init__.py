"""Whether a gateway keeps its size through a day in virtual time, or half an hour in real time."""
