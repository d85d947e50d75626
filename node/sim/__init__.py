"""The deterministic simulator: whole nodes under a virtual clock, a seeded network, store and disk, and checkers.

Everything that happens in a run follows from its seed. There are no threads, no event loop and no real clock here.
"""
