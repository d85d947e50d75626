"""The classifier that a node's settings ask for, with what comes and goes with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from node.actors.runtime import outcome_of
from node.ads import messages as m
from node.ads.classifier import Classifier
from node.ads.guards.limiter import LimiterSettings
from node.core import limits
from node.core.clock import Clock
from node.core.errors import OperatingError
from node.core.ids import EntityRef
from node.core.private_file import UnfitFile, read_private
from node.core.rng import Rng
from node.core.settings import ClassifierSection, is_loopback
from node.crawler.providers.local import LocalClassifier
from node.engine.engine import Engine
from node.singleton.rate_limiter import KIND as RATE_LIMITER

FAULT: Final = "E-CLASSIFIER-SERVICE"
KEY_UNFIT: Final = "E-CLASSIFIER-KEY"


@dataclass(frozen=True, slots=True)
class Provider:
    """`close` is awaited before the executors close, whose threads it sets free. `leave` is told whether the node
    drains; None where nothing is waited for."""

    classifier: Classifier
    counters: Callable[[], dict[str, int]]
    close: Callable[[], Awaitable[None]]
    leave: Callable[[bool], None] | None = None


def executors(section: ClassifierSection) -> Mapping[str, int]:
    """Threads by executor: who asks a service waits for it, and others need not wait with it."""
    if section.provider == "local":
        return limits.executor_threads
    return {**limits.executor_threads, "llm": limits.classify_calls_max}


def opened(
    section: ClassifierSection,
    environment: Mapping[str, str],
    clock: Clock,
    rng: Rng,
    fault: Callable[[str], None],
    token: Callable[[], Awaitable[int | None]] | None = None,
) -> Provider:
    """Called on the running loop; `token` is `cluster_token` of an engine. Raises OperatingError where a service's key
    is missing or can't be used."""
    local = LocalClassifier()
    if section.provider == "local":
        return Provider(local, dict, _nothing)
    # Only here: a node that asks nobody neither waits for an HTTP client to load nor holds one in memory.
    from node.crawler.llm import anthropic, gemini, openai
    from node.crawler.llm.wires import Service
    from node.crawler.providers.post import HttpPost
    from node.crawler.providers.remote import RemoteClassifier, Surroundings

    wire = {"anthropic": anthropic.WIRE, "gemini": gemini.WIRE, "openai": openai.WIRE}[section.provider]
    key = api_key(section.api_key_file, wire.key_variable, environment)
    base_url = section.base_url or wire.base_url
    post = HttpPost(clock, direct=is_loopback(urlsplit(base_url).hostname or ""))
    remote = RemoteClassifier(
        section.provider,
        wire,
        Service(base_url, section.model or wire.model, key),
        pace_of(section),
        Surroundings(clock, rng, post, local, fault, token=token),
        section.deadline_ms,
    )
    return Provider(remote, remote.counters, remote.close, remote.leave)


def pace_of(section: ClassifierSection) -> LimiterSettings:
    return LimiterSettings(section.requests_at_once, section.requests_per_min / 60)


async def cluster_token(engine: Engine | None, section: ClassifierSection) -> int | None:
    """A token of the bucket that all nodes share: 0, or how long there is none (ms); None: nobody answered for it."""
    if engine is None:
        return None
    pace, limiter = pace_of(section), EntityRef(RATE_LIMITER, section.provider)
    ask = m.AcquireToken(pace.tokens_max, pace.rate_per_s)
    told = await outcome_of(lambda done: engine.ask(limiter, ask, limits.classify_token_ms_max, done))
    return told.wait_ms if isinstance(told, m.TokenTold) else None


async def watch(provider: Provider, accepts_work: Callable[[], bool]) -> None:
    """For ever: a node that drains asks no service, and one whose drain was taken back does again."""
    while provider.leave is not None:
        provider.leave(not accepts_work())
        await asyncio.sleep(limits.classify_drain_look_ms / 1_000)


def api_key(path: Path | None, variable: str, environment: Mapping[str, str]) -> str:
    """A service's key, from its file or else from the environment. Raises OperatingError `E-CLASSIFIER-KEY`; no message
    quotes the key."""
    if path is None:
        found, origin = environment.get(variable, ""), f"the environment's {variable}"
        hint = f"write the key into a file of mode 0600 and name it in classifier.api_key_file, or set {variable}"
    else:
        found, origin, hint = _file(path), f"classifier.api_key_file {path}", "one line with the key, nothing else"
    key = found.strip()
    if not key:
        raise OperatingError(KEY_UNFIT, f"{origin} holds no key", hint=hint)
    if len(key) > limits.classify_key_chars_max or not all("!" <= each <= "~" for each in key):
        raise OperatingError(KEY_UNFIT, f"{origin} holds something else than a key", hint=hint)
    return key


def _file(path: Path) -> str:
    try:
        return read_private(path, limits.key_file_bytes_max).decode("utf-8")
    except UnfitFile as unfit:
        raise OperatingError(KEY_UNFIT, f"classifier.api_key_file {path} {unfit.what}", hint=unfit.hint) from None
    except UnicodeDecodeError:
        raise OperatingError(KEY_UNFIT, f"classifier.api_key_file {path} is not text") from None


async def _nothing() -> None:
    """There is nothing to close."""
