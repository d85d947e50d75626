"""A node's settings: the commented example loads, and every kind of mistake is named."""

from pathlib import Path

import pytest

from node.core.errors import OperatingError
from node.core.settings import load_settings
from scripts.every_key import TARGET, every_key

OPENAI = '[classifier]\nprovider = "openai"\n'
EXAMPLE = Path(__file__).parents[3] / "configs" / "one-machine.toml"


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = EXAMPLE.read_text()
    assert old in text
    path = tmp_path / "node.toml"
    path.write_text(text.replace(old, new))
    return path


def test_the_example_loads() -> None:
    settings = load_settings(EXAMPLE)
    assert settings.node.name == "node-1"
    assert settings.shown()["cluster.profile"] == "fast"


@pytest.mark.parametrize("name", ["every-key.toml", "three-hosts-postgres.toml"])
def test_the_other_examples_load(name: str) -> None:
    assert load_settings(EXAMPLE.with_name(name)).node.name == "node-1"


def test_the_file_with_every_key_is_current() -> None:
    assert TARGET.read_text() == every_key(), "run: python -m scripts.every_key"


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMOVOLVE_NODE_NODE__CAPACITY", "7")
    assert load_settings(EXAMPLE).node.capacity == 7


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('profile = "fast"', 'profil = "fast"', "did you mean 'profile'"),
        ('profile = "fast"', 'profile = "slow"', "cluster.profile"),
        ('"crawler"]', '"crawlr"]', "'crawlr' is not a role"),
        ('name = "node-1"', 'name = "Node 1"', "is not a node name"),
        ("capacity = 1", "capacity = 0", "node.capacity"),
        ("[cluster]", "[cluster", "not TOML"),
        ('kind = "lmdb"', 'kind = "postgres"', "path has no meaning with kind 'postgres'"),
        ('kind = "lmdb"', "pool_size = 5", "pool_size has no meaning with kind 'lmdb'"),
        ('path = "/var/lib/promovolve/store"', "", "needs a path"),
        ("[store]", "[membership]\nheartbeat_ms = 0\n[store]", "membership.heartbeat_ms"),
        ("[store]", "[membership]\nheart_beat_ms = 5\n[store]", "did you mean 'heartbeat_ms'"),
        ("[store]", "[membership]\nheartbeat_ms = 'x'\n[store]", "membership.heartbeat_ms: 'x' is not a whole number"),
        ("[store]", "[membership]\nheartbeat_ms = -5\n[store]", "membership.heartbeat_ms: -5 is not "),
        ("[store]", "[split_brain]\nquorum = -1\n[store]", "split_brain.quorum"),
        ('path = "/var/lib/promovolve/store"', 'schema_name = "a;b"', "store.schema_name"),
        ("[store]", '[classifier]\nprovider = "gpt"\n[store]', "classifier.provider"),
        ("[store]", '[classifier]\nmodel = "m"\n[store]', "model has no meaning with provider 'local'"),
        ("[store]", f"{OPENAI}base_url = 'http://models.example/v1'\n[store]", "in clear"),
        ("[store]", f"{OPENAI}base_url = 'https://k:s@models.example/v1'\n[store]", "no name and no password"),
        ("[store]", f"{OPENAI}base_url = 'models.example/v1'\n[store]", "an address like https://host/v1"),
        ("[store]", f"{OPENAI}base_url = 'https://models.example/v1?key=1'\n[store]", "an address like"),
        ("[store]", f"{OPENAI}model = 'a b'\n[store]", "classifier.model"),
        ("[store]", f"{OPENAI}api_key = 'sk-1'\n[store]", "did you mean 'api_key_file'"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(OperatingError) as caught:
        load_settings(changed(tmp_path, old, new))
    assert caught.value.code == "E-CONFIG"
    assert said in caught.value.message
    assert str(tmp_path) in caught.value.message


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/v1/", "http://[::1]/v1", "http://localhost/v1", "https://models.example"]
)
def test_a_service_is_asked_in_clear_on_this_machine_alone(tmp_path: Path, url: str) -> None:
    settings = load_settings(changed(tmp_path, "[store]", f"{OPENAI}base_url = '{url}'\n[store]"))
    assert settings.classifier.base_url == url.rstrip("/")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatingError, match="No such file"):
        load_settings(tmp_path / "absent.toml")
