"""A simulated ad market: whole clusters that live for days, with visitors, publishers, operators and faults.

`python -m node.sim market --days 7 --seed N`. What is in it is drawn by `plan`, what happened is kept by `record`, what
must be true of that is decided by `rules` from the record alone.
"""
