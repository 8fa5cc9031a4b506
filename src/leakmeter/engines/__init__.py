"""Engines: where jobs run."""
