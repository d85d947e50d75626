"""The classifier that a node's settings ask for: its key, and what is refused as one."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from model_formats import FORMATS, KEY
from model_server import ModelServer

from node.core import limits
from node.core.clock import SystemClock
from node.core.errors import OperatingError
from node.core.settings import ClassifierSection
from node.crawler.providers.local import LocalClassifier
from node.wiring.classifying import Provider, api_key, executors, opened

SECRET = "sk-very-secret-5c1"


def provider(section: ClassifierSection, environment: dict[str, str]) -> Provider:
    return opened(section, environment, SystemClock(), random.Random(1), lambda _text: None)


def test_without_a_word_pages_are_judged_here_and_nobody_waits_with_another() -> None:
    found = provider(ClassifierSection(), {"OPENAI_API_KEY": SECRET})
    assert isinstance(found.classifier, LocalClassifier)
    assert found.counters() == {}
    assert executors(ClassifierSection()) == limits.executor_threads
    assert executors(ClassifierSection(provider="openai"))["llm"] == limits.classify_calls_max


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_each_provider_asks_with_the_key_of_its_own_name(name: str, tmp_path: Path) -> None:
    """As settings have it: from the environment, and from a file, which wins."""
    file = tmp_path / "classifier.key"
    file.touch(0o600)
    file.write_text(f"{KEY}\n")
    variable = f"{name.upper()}_API_KEY"

    async def body() -> None:
        with ModelServer(FORMATS[name]) as server:
            server.script = [server.says('{"categories": [{"id": "210", "confidence": 1}], "places": []}')]
            for key_file, environment in ((None, {variable: KEY}), (file, {variable: "another"})):
                section = ClassifierSection(
                    provider=name,  # type: ignore[arg-type]
                    base_url=server.base_url,
                    api_key_file=key_file,
                )
                found = provider(section, environment)
                page = await asyncio.to_thread(found.classifier.classify, "a page")
                assert (page.provider, page.categories) == (name, (("210", 1.0),))
                assert found.counters()["classifier.judged"] == 1
                await found.close()

    asyncio.run(body())


def test_services_are_asked_where_their_documentation_says() -> None:
    async def body() -> None:
        places = {}
        for name in FORMATS:
            section = ClassifierSection(provider=name)  # type: ignore[arg-type]
            found = provider(section, {f"{name.upper()}_API_KEY": SECRET})
            places[name] = found.classifier._service.base_url  # type: ignore[attr-defined]
            await found.close()
        assert places == {
            "gemini": "https://generativelanguage.googleapis.com/v1beta",
            "openai": "https://api.openai.com/v1",
            "anthropic": "https://api.anthropic.com/v1",
        }

    asyncio.run(body())


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        (None, 0, "No such file"),
        (SECRET, 0o644, "can be used by others (mode 0644)"),
        ("\n", 0o600, "holds no key"),
        (f"{SECRET} and more", 0o600, "something else than a key"),
        (f"{SECRET}\nX-Other: 1", 0o600, "something else than a key"),
        (SECRET + "é", 0o600, "something else than a key"),
        (SECRET * 60, 0o600, "something else than a key"),
    ],
)
def test_what_is_no_key_is_refused_without_quoting_it(
    tmp_path: Path, content: str | None, mode: int, said: str
) -> None:
    path = tmp_path / "classifier.key"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    with pytest.raises(OperatingError) as caught:
        api_key(path, "OPENAI_API_KEY", {"OPENAI_API_KEY": SECRET})
    assert caught.value.code == "E-CLASSIFIER-KEY"
    assert said in caught.value.message
    assert SECRET not in caught.value.message


def test_a_key_that_is_nowhere_is_asked_for_by_its_name() -> None:
    with pytest.raises(OperatingError, match="GEMINI_API_KEY holds no key") as caught:
        api_key(None, "GEMINI_API_KEY", {"OPENAI_API_KEY": SECRET})
    assert "classifier.api_key_file" in caught.value.hint
