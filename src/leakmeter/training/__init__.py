"""Training: a recipe, an architecture or a base, and a plain loop that makes checkpoints of them.

It is handed examples, never records, and writes one folder, never a run.
"""
