"""The reconcile desk: scans that open and clear escalations about disagreements, and the ways in which people settle them."""
