"""How fast and how cheap delivering is, beside a task queue that is known to be good: `make bench`."""
