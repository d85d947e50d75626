"""The words that a ServeExplanation gives as reasons, with what they mean to an operator: stable, so that a script can
match them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# `candidates[].reason`: of one that stood in the slot's pool.
CANDIDATES: Final[Mapping[str, str]] = {
    "not_approved": "the publisher has not approved the creative on this site",
    "blocked_by_publisher": "the publisher blocks its advertiser's domain or its kind of product",
    "excluded_by_request": "the reader keeps an ad of its campaign in another slot",
    "wrong_size": "it is larger than the slot, or not of its form",
    "not_auctioned_for_page": "it bids for none of the page's categories",
    "place_not_allowed": "its campaign wants places that this page is not about",
    "category_blocked": "its campaign does not want this page's category",
    "below_floor": "its bid is below the slot's floor for that category",
    "held_back_by_pacing": "its campaign is ahead of its day, and sits this page view out",
    "outscored": "another candidate drew a better score",
    "already_in_this_batch": "it, or another ad of its campaign, fills another slot of this page view",
    "won_this_page_recently": "its campaign won this page a moment ago, and steps back for others",
    "insufficient_budget": "its campaign or its advertiser has not the money left today",
    "paused_or_suspended": "its campaign or its advertiser is paused, suspended, deleted or out of its schedule",
    "creative_withdrawn": "the creative is paused or deleted; others of its campaign may be served",
    "reserve_unanswered": "its campaign or its advertiser did not answer in time; it is tried last for a second",
    "pinned_by_the_reader": "it won because the reader keeps it in this slot",
}

# `turned_away[].reason`: of a campaign that bids for the page's category and stood in no pool.
TURNED_AWAY: Final[Mapping[str, str]] = {
    "site_not_allowed": "it names the sites where it wants to be shown, and this is none of them",
    "audience_not_allowed": "the site's readers are not from where it wants to be seen",
    "place_not_allowed": "it wants places that this page is not about",
    "category_blocked": "it does not want this page's category",
}

# `why` of a slot that stayed empty, with spaces for underlines.
EMPTY: Final[Mapping[str, str]] = {
    "no_pool": "no auction has filled the slot: 'coverage explain SITE' tells why",
    "unknown_slot": "the site has no such slot yet",
    "no_eligible_candidate": "all that stand in the pool are filtered: each says why",
    "held_back_by_pacing": "all that may be shown are ahead of their day",
    "all_refused": "nobody who was drawn could pay: each says why",
    "candidates_in_other_slots": "all that may be shown fill other slots of this page view",
}
