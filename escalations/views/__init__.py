"""The pages of one case and what reviewers do on them: a module for each subject."""
