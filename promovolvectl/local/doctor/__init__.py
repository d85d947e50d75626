"""What `doctor` looks at: facts are gathered at the edge (`gathering`), judged by pure functions beside it."""
