"""One-line faults, and the hunt for them: a simulator that does not find them proves nothing."""
