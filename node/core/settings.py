"""A node's settings: one TOML file, overridden by environment variables `PROMOVOLVE_NODE_<SECTION>__<KEY>`.

Unknown keys are refused, with the nearest known one named: a key that is silently ignored is a fault that nobody sees.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from node.core import limits
from node.core.errors import BadInput, OperatingError
from node.core.ids import ROLES, node_name


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClusterSection(_Section):
    """The cluster that this node belongs to. `profile` sets the times of failure detection: `fast` for the processes of
    one machine. `min_entity_nodes`: a first placement waits for so many, or ten seconds."""

    name: str = Field(min_length=1, max_length=63)
    profile: Literal["default", "fast"] = "default"
    min_entity_nodes: int = Field(default=1, ge=1, le=1_000)


class NodeSection(_Section):
    """This node. `data`: the folder of its replica. `capacity` weighs its share of the shards."""

    name: str
    roles: tuple[str, ...] = Field(min_length=1)
    data: Path
    capacity: int = Field(default=1, ge=1, le=1_000)
    drain_deadline_s: int = Field(default=60, ge=1, le=3_600)

    @field_validator("name")
    @classmethod
    def _a_node_name(cls, value: str) -> str:
        return node_name(value)

    @field_validator("roles")
    @classmethod
    def _known_roles(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for role in value:
            if role not in ROLES:
                raise ValueError(f"{role!r} is not a role: they are {', '.join(ROLES)}")
        return tuple(dict.fromkeys(value))


class WireSection(_Section):
    """Addresses as `host:port`, the files with this node's secret key and the cluster's roster, and the seeds as
    `name@host:control port`. `http` is used by nodes with the api role. `advertise_control` and `advertise_data` are
    what peers dial where that differs from what is listened at: behind a relay, or an address translation."""

    control: str
    data: str
    admin: str
    advertise_control: str = ""
    advertise_data: str = ""
    http: str = ""
    key_file: Path
    roster_file: Path
    seeds: tuple[str, ...] = Field(min_length=1)
    bootstrap: bool = False


class StoreSection(_Section):
    """The state store. `lmdb`: one folder, `path`, that the node processes of one machine share. `postgres`: one
    `schema_name` of a database for the nodes of several machines.

    `dsn_file` holds the connection string, mode 0600; without it the PG* variables of the environment say where the
    database is. `pool_size` connections at most, one of them for leases alone; `deadline_ms` bounds a whole
    transaction. `prepared_statements` off is what pgbouncer in transaction mode needs.
    """

    kind: Literal["lmdb", "postgres"] = "lmdb"
    path: Path | None = None
    dsn_file: Path | None = None
    schema_name: str = Field(default="promovolve", pattern=r"^[a-z_][a-z0-9_]{0,62}$")
    pool_size: int = Field(default=4, ge=3, le=64)
    deadline_ms: int = Field(default=limits.store_deadline_ms, ge=500, le=60_000)
    prepared_statements: bool = True

    @model_validator(mode="after")
    def _nothing_is_ignored(self) -> Self:
        """A key of the other kind would be silently ignored, so it is refused."""
        others = {"path"} if self.kind == "postgres" else set(type(self).model_fields) - {"kind", "path"}
        foreign = sorted(others & self.model_fields_set)
        if foreign:
            raise ValueError(f"{foreign[0]} has no meaning with kind {self.kind!r}")
        if self.kind == "lmdb" and self.path is None:
            raise ValueError("kind 'lmdb' needs a path")
        return self


class NodeSettings(BaseSettings):
    """All sections; see each."""

    model_config = SettingsConfigDict(
        env_prefix="PROMOVOLVE_NODE_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    cluster: ClusterSection
    node: NodeSection
    wire: WireSection
    store: StoreSection

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, which is handed in as init values."""
        return (env_settings, init_settings)

    def shown(self) -> dict[str, str]:
        """Every value in force, as text, for `node show`."""
        return {
            f"{section}.{key}": str(value)
            for section, values in self.model_dump().items()
            for key, value in values.items()
        }


def load_settings(path: Path) -> NodeSettings:
    """Reads a node's file. Raises OperatingError `E-CONFIG` that names the file, the key and what is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OperatingError("E-CONFIG", f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OperatingError("E-CONFIG", f"{path}: not TOML: {error}") from None
    try:
        return NodeSettings(**document)
    except ValidationError as error:
        first = error.errors()[0]
        raise OperatingError("E-CONFIG", f"{path}: {_words(first)}") from None
    except BadInput as error:
        raise OperatingError("E-CONFIG", f"{path}: {error.message}") from None


def _words(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] != "extra_forbidden":
        return f"{place}: {error['msg'].removeprefix('Value error, ')}"
    section, _, key = place.rpartition(".")
    fields = NodeSettings.model_fields
    owner: Any = fields[section].annotation if section in fields else NodeSettings
    near = difflib.get_close_matches(key, owner.model_fields, 1)
    return f"{place}: no such setting" + (f"; did you mean {near[0]!r}?" if near else "")
