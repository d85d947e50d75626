"""What a webhook that is sent here says."""

from __future__ import annotations

from typing import Literal

import msgspec

from node.http.admin_bodies import Id


class WebhookData(msgspec.Struct, frozen=True):
    """The id of the advertiser, publisher or site that the message is about."""

    id: Id


class WebhookBody(msgspec.Struct, frozen=True):
    """`timestamp` is the sender's; what counts is the signed one."""

    type: Literal[
        "advertiser.suspended",
        "advertiser.resumed",
        "publisher.suspended",
        "publisher.resumed",
        "site.suspended",
        "site.resumed",
    ]
    data: WebhookData
    timestamp: str = ""
