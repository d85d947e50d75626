"""Codes of keys: a file that can't be used, and who does not hold what is expected of them."""

from __future__ import annotations

from typing import Final

from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import ErrorCode

_ENTRIES: Final[tuple[tuple[str, ExitStatus, str, str], ...]] = (
    (
        "E-ADMIN-KEY",
        ExitStatus.MISMATCH,
        "The node at that address does not hold the key that the profile expects.",
        "Compare the profile's endpoints with the cluster's roster.",
    ),
    (
        "E-NO-SERVER-KEY",
        ExitStatus.UNUSABLE_CONFIG,
        "Something listens at the address, but the profile holds no public key to know it by.",
        "Add the node with its key to the profile's endpoints.",
    ),
    (
        "E-KEY-FILE",
        ExitStatus.UNUSABLE_CONFIG,
        "The key file is missing, can be used by others, or holds no key.",
        "chmod 600 FILE, or name the right file with PROMOVOLVECTL_KEY_FILE. A file that is gone is best put back from "
        "a copy: those of a cluster of several hosts are in the folder that 'promovolvectl cluster init' made, too. "
        "An administrator gives an operator another one with 'promovolvectl auth key rotate NAME', or makes one with "
        "'promovolvectl auth key create NAME'. A node that runs gets another one by 'promovolvectl auth rotate NODE "
        "--step install', then use, then retire. For a node on this machine that does not run: 'promovolvectl down', "
        "move roster.toml out of its cluster's folder, and 'promovolvectl up' makes the keys that are missing and a "
        "roster with them. For one of several hosts: move roster.toml out of every folder that 'cluster init' made, "
        "give the same command again, copy the folders to their hosts, and restart the nodes.",
    ),
)
KEY_CODES: Final = tuple(
    ErrorCode(code=code, exit=int(status), meaning=meaning, help=help_) for code, status, meaning, help_ in _ENTRIES
)
