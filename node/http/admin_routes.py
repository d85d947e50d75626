"""Administration by HTTP as a table: which request of the admin protocol each route is.

So everything that a command may do, and its checks, guard and audit, are the same here; a route only names it. What
is no order of that protocol is carried out by the handler of its name, in `administration`.
"""

from __future__ import annotations

from typing import Final

from node.http.account_routes import ADVERTISERS, CAMPAIGNS, SHARED
from node.http.publisher_routes import PUBLISHERS
from node.http.route import POST, Route
from node.http.site_routes import EVENT_STREAMS, SITES
from node.http.stats_routes import METERING, STATS
from node.http.webhook_body import WebhookBody

WEBHOOK: Final = Route(
    method=POST,
    path="/v1/webhooks/{sender}",
    name="webhook",
    summary="Take a signed message (Standard Webhooks) that suspends or resumes an account",
    body=WebhookBody,
    status=204,
    problems=(400, 401, 404, 408, 409, 413, 503),
)

ADMIN: Final = (*PUBLISHERS, *SITES, *ADVERTISERS, *CAMPAIGNS, *STATS, *SHARED, *METERING, *EVENT_STREAMS)
