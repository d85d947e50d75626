"""From the place that an order names to the store and the roster that are there."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from node.core.errors import BadInput, OperatingError
from node.core.settings import load_settings
from node.store.opening import read_dsn
from node.store.postgres import PostgresOptions
from node.wire.roster import parse_roster
from node.wiring.orders import Place


class Found(NamedTuple):
    """`path`, or `postgres` with its options; `roster` is the file's text, empty without one."""

    path: Path | None
    postgres: PostgresOptions | None
    roster: str

    @property
    def words(self) -> str:
        """What to call it in a sentence."""
        return str(self.path) if self.postgres is None else f"schema {self.postgres.schema!r} of the database"


def find(place: Place) -> Found:
    """Raises OperatingError for settings, a roster or a file of credentials that can't be used."""
    if not place.settings:
        return Found(Path(place.path), None, _roster(Path(place.roster)) if place.roster else "")
    settings = load_settings(Path(place.settings))
    store = settings.store
    roster = _roster(settings.wire.roster_file)
    if store.kind == "lmdb":
        return Found(store.path, None, roster)
    options = PostgresOptions(
        dsn=read_dsn(store.dsn_file) if store.dsn_file else "",
        schema=store.schema_name,
        deadline_ms=store.deadline_ms,
        name="promovolve-storekeeper",
    )
    return Found(None, options, roster)


def _roster(file: Path) -> str:
    """The text, once it is certain that a roster is all it is: a backup must hold no secret."""
    try:
        text = file.read_text(encoding="utf-8")
        parse_roster(text)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise OperatingError("E-CONFIG", f"roster {file}: {error}") from None
    except BadInput as error:
        raise OperatingError("E-CONFIG", f"roster {file}: {error.message}") from None
    return text
