"""What was tried, what was applied, and what changed: attempts, executions, aborts, row changes."""
