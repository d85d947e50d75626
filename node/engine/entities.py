"""The entity types of a node, with what each is given: the one list of what can be in a cluster."""

from __future__ import annotations

from collections.abc import Callable

from node.actors.actor import EntityType
from node.ads import messages as m
from node.ads.classifier import Classifier
from node.ads.entities.adserver import TAUGHT, AdServer
from node.ads.entities.advertiser import Advertiser, AdvertiserState
from node.ads.entities.auctioneer import Auctioneer
from node.ads.entities.campaign import Campaign
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.category_bidder import CategoryBidder
from node.ads.entities.page_shelf import KIND as PAGE_SHELF
from node.ads.entities.page_shelf import PageShelf, PageShelfState
from node.ads.entities.publisher import Publisher, PublisherState
from node.ads.entities.ranker import ASKED, Ranker
from node.ads.entities.ranker import KIND as RANKER
from node.ads.entities.site import Site
from node.ads.entities.site_state import SiteState
from node.ads.guards.limiter import LimiterState
from node.ads.ranking import CategoryRank
from node.ads.serveindex import ServeIndex
from node.flows.answer_book import KIND as ANSWER_BOOK
from node.flows.answer_book import AnswerBook, AnswerBookState
from node.flows.cluster import Cluster
from node.flows.operation import Operation
from node.flows.replay import Replay
from node.flows.replay_register import RegisterState, ReplayRegister
from node.flows.replay_state import ReplayState
from node.flows.state import OperationState
from node.singleton.campaign_directory import CampaignDirectory
from node.singleton.demand_liveness import DemandLiveness
from node.singleton.rate_limiter import KIND as RATE_LIMITER
from node.singleton.rate_limiter import RateLimiter

# Each with a question: cells come into being with a message, and these must be there before anybody asks.
SINGLETONS = {"campaign-directory": m.GetCategories(), "demand-liveness": m.GetStripes()}
PASSIVATE_MS = 15 * 60_000
SHELF_MS = 60_000  # a shelf has nothing that its site has not, but a write under way
UNVISITED_MS = 60 * 60_000  # an ad server relearns all but its rolling statistics, which say little without visits

# What a composition runs in its cluster, made for each node; `entity_types` is the product's.
EntityTypes = Callable[[Classifier, ServeIndex, Cluster], tuple[EntityType, ...]]


def entity_types(classifier: Classifier, index: ServeIndex, cluster: Cluster) -> tuple[EntityType, ...]:
    """What runs in the shards and as singletons. Remembered types start with their shard, without traffic."""
    return (
        EntityType("publisher", Publisher, PublisherState, remember=True, idle_ms=PASSIVATE_MS),
        EntityType("site", lambda site: Site(site, classifier, index), SiteState, remember=True),
        EntityType(PAGE_SHELF, PageShelf, PageShelfState, idle_ms=SHELF_MS),
        EntityType("auctioneer", Auctioneer),
        EntityType("adserver", lambda site: AdServer(site, index), idle_ms=UNVISITED_MS, background=TAUGHT),
        EntityType(
            "campaign",
            lambda campaign: Campaign(campaign, index.exhausted, index.spent),
            CampaignState,
            remember=True,
        ),
        EntityType("advertiser", Advertiser, AdvertiserState, remember=True, idle_ms=PASSIVATE_MS),
        EntityType("category-bidder", CategoryBidder),
        EntityType(RANKER, Ranker, CategoryRank, idle_ms=PASSIVATE_MS, background=ASKED),
        EntityType("campaign-directory", CampaignDirectory),
        EntityType("demand-liveness", DemandLiveness),
        EntityType(RATE_LIMITER, RateLimiter, LimiterState, idle_ms=PASSIVATE_MS),
        EntityType(ANSWER_BOOK, AnswerBook, AnswerBookState, idle_ms=PASSIVATE_MS),
        EntityType("replay", Replay, ReplayState, remember=True, idle_ms=PASSIVATE_MS),
        EntityType("replay-register", ReplayRegister, RegisterState, idle_ms=PASSIVATE_MS),
        EntityType(
            "operation",
            lambda operation: Operation(operation, cluster),
            OperationState,
            remember=True,
            idle_ms=PASSIVATE_MS,
        ),
    )
