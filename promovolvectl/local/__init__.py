"""A whole cluster on this machine: its folder, its keys and ports, and one process a node."""

from promovolvectl.local.cluster import down, start_node, up

__all__ = ["down", "start_node", "up"]
