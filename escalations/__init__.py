"""Questions put to a person, and the person's decisions."""
