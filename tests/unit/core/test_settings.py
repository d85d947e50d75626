"""A node's settings: the commented example loads, and every kind of mistake is named."""

from pathlib import Path

import pytest

from node.core.errors import OperatingError
from node.core.settings import load_settings
from scripts.every_key import TARGET, every_key

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
        ("[store]", "[split_brain]\nquorum = -1\n[store]", "split_brain.quorum"),
        ('path = "/var/lib/promovolve/store"', 'schema_name = "a;b"', "store.schema_name"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(OperatingError) as caught:
        load_settings(changed(tmp_path, old, new))
    assert caught.value.code == "E-CONFIG"
    assert said in caught.value.message
    assert str(tmp_path) in caught.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatingError, match="No such file"):
        load_settings(tmp_path / "absent.toml")
