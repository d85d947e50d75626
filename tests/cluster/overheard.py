"""What was said of each cluster, and whether any of it, or of what lies in its folder, tells a secret (issue 5, 7).

`Cluster` keeps here what its commands were given and answered. When it is over, every secret that is known of it, the
halves of keys in files and the publishers' signing secrets in the store, is looked for in all that, in the arguments
of processes, and in every file that is left: logs, reports, bundles, stores, replicas, backups.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from canary import Searcher, keys_in, keys_written, readings

from node.ads.entities.publisher import PublisherState
from node.core.clock import SystemClock
from node.core.errors import OperatingError
from node.store.lmdb import LmdbStore
from node.store.port import ListStates, StatePage
from node.wire.codec import CODEC

MAKES_KEYS: Final = frozenset(("up", "start", "rotate", "create", "restart"))
TOKENS_MAX: Final = 200
LMDB_MAGIC: Final = bytes.fromhex("dec0efbe")
_TOKEN: Final = re.compile(rb"[?&]tok=([A-Za-z0-9_-]{43})")


class Overheard:
    """Of one cluster, whose every file lies below `root`."""

    def __init__(self, root: Path, data: Path) -> None:
        self._root = root
        self._data = data
        self._keys: dict[bytes, Path] = {}  # where each may stand; nowhere when it was only shown to who asked for it
        self._key_files: set[Path] = set()
        self._publishers: set[bytes] = set()
        self._tokens: set[bytes] = set()
        self._said: dict[str, set[bytes]] = {"arguments": set(), "answers": set(), "errors": set()}

    @property
    def secrets(self) -> list[tuple[str, bytes]]:
        """All keys with names that tell nothing."""
        return [(f"the key in {path.name}" if path.name else "a key", secret) for secret, path in self._keys.items()]

    # ---- while it lives

    def heard(self, words: Sequence[str], out: str, err: str) -> None:
        """One command line and what it wrote."""
        if MAKES_KEYS & set(words):
            self.learn()
        for secret in keys_written(out):
            self._keys.setdefault(secret, Path())
        else_said = "" if "-" in words and keys_written(out) else out  # who asks for a key on stdout is given it
        self._said["arguments"].add("\0".join(words).encode())
        self._said["answers"].add(else_said.encode(errors="replace"))
        self._said["errors"].add(err.encode(errors="replace"))

    def served(self, body: bytes) -> None:
        """An answer to a page view, whose urls are signed."""
        self._tokens.update(_TOKEN.findall(body)[: max(0, TOKENS_MAX - len(self._tokens))])

    def learn(self) -> None:
        """Looks for new keys: one that is rotated is gone from its file later on."""
        for path, secret in keys_in(self._root).items():
            self._key_files.add(path)
            self._keys.setdefault(secret, path)

    # ---- when it is over

    def searched(self) -> list[str]:
        """Each place where a secret stands and may not."""
        self.learn()
        self._learn_publishers()
        keys, signing = Searcher(), Searcher()
        for name, secret in self.secrets:
            keys.add(name, secret)
        for secret in self._publishers:
            signing.add("a publisher's signing secret", secret)
        for token in self._tokens:
            signing.add_words("the token of a beacon", token)
        found = [
            f"{what}: {name}"
            for what, texts in self._said.items()
            for text in texts
            for name in keys.found(text) | (signing.found(text) if what == "errors" else set())
        ]
        for path in sorted(self._root.rglob("*")):
            if path.is_file() and not path.is_symlink() and path not in self._key_files:
                found += self._in_file(path, keys, signing)
        return found

    def _in_file(self, path: Path, keys: Searcher, signing: Searcher) -> list[str]:
        found: set[str] = set()
        for number, data in enumerate(readings(path)):
            found |= keys.found(data)
            if not (number == 0 and self._may_sign(path, data)):
                found |= signing.found(data)
        return [f"{path.relative_to(self._root)}: {name}" for name in sorted(found)]

    def _may_sign(self, path: Path, data: bytes) -> bool:
        """State stores, and what was saved of them, hold what signs; replicas and logs don't."""
        store = data[16:20] == LMDB_MAGIC and "replica" not in path.parts
        return store or path.suffix == ".pbk"

    def _learn_publishers(self) -> None:
        folder = self._data / "store"
        if not (folder / "data.mdb").exists():
            return  # it keeps its state elsewhere
        with contextlib.suppress(OperatingError, OSError):  # a test may have damaged it on purpose
            store = LmdbStore(folder, SystemClock())
            try:
                [page] = store.apply([ListStates(("publisher",), limit=500)])
            finally:
                store.close()
            if isinstance(page, StatePage):
                states = [CODEC.decode_record(record.body) for record in page.records]
                self._publishers |= {state.secret for state in states if isinstance(state, PublisherState)}


class Everybody:
    """All clusters of this session, by their file of profiles."""

    def __init__(self) -> None:
        self._by_config: dict[str, Overheard] = {}
        self._over = 0
        self.findings: list[str] = []
        self.arguments = Searcher()

    def meet(self, config: str, root: Path, data: Path) -> Overheard:
        """One more cluster."""
        return self._by_config.setdefault(config, Overheard(root, data))

    def heard(self, env: Mapping[str, str], words: Sequence[str], out: str, err: str) -> None:
        """A command line that a test has run itself, in the surroundings of a cluster."""
        cluster = self._by_config.get(env.get("PROMOVOLVECTL_CONFIG", ""))
        if cluster is not None:
            cluster.heard(words, out, err)

    def leave(self, config: str) -> None:
        """A cluster is over: it is searched, once."""
        cluster = self._by_config.pop(config, None)
        if cluster is None:
            return
        self.findings += [f"{Path(config).parent.name}: {found}" for found in cluster.searched()]
        self._over += 1
        for name, secret in cluster.secrets:
            self.arguments.add(f"{self._over}: {name}", secret)


EVERYBODY: Final = Everybody()
