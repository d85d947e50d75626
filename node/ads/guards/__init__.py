"""Guards of the edge: who is asked less than it asks, what was seen before, what can't have happened in this order.

Each is a plain state machine: time comes in, verdicts go out. `bloom` and `cuckoo` remember what they can't list.
"""
