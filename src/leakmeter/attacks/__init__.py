"""Attacks: one file per idea. Each asks, reads and judges; none loads a model."""
