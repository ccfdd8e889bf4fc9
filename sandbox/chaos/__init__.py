"""Random conversations and random faults on an instance of its own, then healing, quiet, and a look at every row."""
