"""What carries out a route of administration that is no order of the admin protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from node.http.access import Token
from node.http.call import Call

# (bearer, request, its query, its body) -> the answer. Raises BadInput, AdminRefusal or ProblemError.
Special = Callable[[Token, Call, Any, Any], Awaitable[msgspec.Struct]]
