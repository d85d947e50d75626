"""A bundle for whoever helps: gathered from every node at once, without secrets, in one file with a manifest."""
