"""Training, comparisons, and what they leave on disk."""
