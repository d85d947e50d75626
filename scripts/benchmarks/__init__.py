"""What `scripts/bench` measures: one module per subject, each beside its floor, in the same run."""
