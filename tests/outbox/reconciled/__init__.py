"""Every way to settle every disagreement: what is made to disagree, what is offered then, and what comes of each exit."""
