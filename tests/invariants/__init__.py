"""What must be true of the database: each sentence broken by hand, and a used database that breaks none."""
