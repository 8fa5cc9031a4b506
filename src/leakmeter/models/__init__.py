"""Models on this machine: they answer the questions attacks ask. One place for tokens, batches and precision."""
