"""A node's settings: one TOML file, overridden by environment variables `PROMOVOLVE_NODE_<SECTION>__<KEY>`.

Unknown keys are refused, with the nearest known one named: a key that is silently ignored is a fault that nobody sees.
"""

from __future__ import annotations

import difflib
import tomllib
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from node.core import limits
from node.core.errors import BadInput, OperatingError
from node.core.ids import ROLES, node_name
from node.core.membership_section import MembershipSection, SplitBrainSection


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClusterSection(_Section):
    """The cluster that this node belongs to; the same on all its nodes."""

    name: str = Field(
        min_length=1, max_length=63, description="nodes of another name are refused", examples=["example"]
    )
    profile: Literal["default", "fast"] = Field(
        default="default", description='times of failure detection: "fast" for one machine, "default" for a network'
    )
    min_entity_nodes: int = Field(
        default=1, ge=1, le=1_000, description="a first placement waits for so many entity nodes, at most ten seconds"
    )


class NodeSection(_Section):
    """This node."""

    name: str = Field(description="lower-case letters, digits and hyphens; unique in the cluster", examples=["node-1"])
    roles: tuple[str, ...] = Field(
        min_length=1, description="what this node does", examples=[["api", "entity", "singleton", "crawler"]]
    )
    data: Path = Field(
        description="folder of this node's replica, its own alone", examples=["/var/lib/promovolve/node-1"]
    )
    capacity: int = Field(default=1, ge=1, le=1_000, description="weighs this node's share of the shards")
    drain_deadline_s: int = Field(default=60, ge=1, le=3_600, description="all phases of a drain together")

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
    """Addresses as `host:port`, keys, and whom to join."""

    control: str = Field(description="heartbeats, gossip, hand-off", examples=["127.0.0.1:7400"])
    data: str = Field(description="messages and deltas", examples=["127.0.0.1:7401"])
    admin: str = Field(description="operators", examples=["127.0.0.1:7402"])
    advertise_control: str = Field(
        default="", description="what peers dial instead of `control`: behind a relay or an address translation"
    )
    advertise_data: str = Field(default="", description="what peers dial instead of `data`")
    http: str = Field(
        default="", description="the public API; used by nodes with the api role", examples=["127.0.0.1:7403"]
    )
    http_access_file: Path | None = Field(
        default=None,
        description="who may administer by HTTP: hashes of bearer tokens, mode 0600 or refused; without it nobody may",
        examples=["/etc/promovolve/http-access.toml"],
    )
    key_file: Path = Field(
        description="this node's CURVE keys, mode 0600 or refused", examples=["/etc/promovolve/node-1.key"]
    )
    roster_file: Path = Field(description="which key may speak as whom", examples=["/etc/promovolve/roster.toml"])
    seeds: tuple[str, ...] = Field(
        min_length=1,
        description="whom to ask to join: name@host:control port, *@host:port for any node at any address of the host "
        "name, or file:PATH with such lines; only the first may form a cluster",
        examples=[["node-1@127.0.0.1:7400"]],
    )
    bootstrap: bool = Field(
        default=False, description="this node may form the cluster although it is not the first seed"
    )


class StoreSection(_Section):
    """Where durable state is kept. A key that has no meaning with the kind is refused."""

    kind: Literal["lmdb", "postgres"] = Field(
        default="lmdb", description='"lmdb" for the nodes of one machine, "postgres" for those of several'
    )
    path: Path | None = Field(
        default=None,
        description="lmdb: the folder that all node processes of this machine share",
        examples=["/var/lib/promovolve/store"],
    )
    dsn_file: Path | None = Field(
        default=None,
        description="postgres: file with the connection string, mode 0600 or refused; without it PG* variables say it",
        examples=["/etc/promovolve/postgres.dsn"],
    )
    schema_name: str = Field(
        default="promovolve",
        pattern=r"^[a-z_][a-z0-9_]{0,62}$",
        description="postgres: where this cluster's tables are; another cluster needs another",
    )
    pool_size: int = Field(
        default=4, ge=3, le=64, description="postgres: connections of this node, one of them for leases alone"
    )
    deadline_ms: int = Field(
        default=limits.store_deadline_ms, ge=500, le=60_000, description="postgres: all of one transaction"
    )
    prepared_statements: bool = Field(default=True, description="postgres: false behind pgbouncer in transaction mode")

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


class ReplicationSection(_Section):
    """How the replicas of the ServeIndex are kept."""

    tombstone_min_age_ms: int = Field(
        default=limits.tombstone_min_age_ms,
        ge=1_000,
        le=30 * 86_400_000,
        description="a removal is remembered at least so long, and until every replica on the roster has it; far "
        "above any delay of a message, and the same on all nodes",
    )
    stream_bytes_per_s: int = Field(
        default=limits.stream_bytes_per_s,
        ge=1 << 16,
        le=1 << 34,
        description="what a replica that is not complete fetches from its peers at most",
    )


class ClassifierSection(_Section):
    """Who judges what pages are about. Any provider but local is sent the text of every page that is judged, and its
    fallback is local. A key that has no meaning with the provider is refused."""

    provider: Literal["local", "gemini", "openai", "anthropic"] = Field(
        default="local", description='"local" asks nobody; "gemini", "openai" or "anthropic" ask that service'
    )
    base_url: str = Field(default="", max_length=2_048, description="where to ask; empty for the service's own address")
    model: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._:/-]{0,200}$",
        description="which model to ask; empty for the provider's small one",
    )
    api_key_file: Path | None = Field(
        default=None,
        description="file with the service's key, mode 0600 or refused; without it GEMINI_API_KEY, OPENAI_API_KEY or "
        "ANTHROPIC_API_KEY says it",
        examples=["/etc/promovolve/classifier.key"],
    )
    requests_per_min: int = Field(
        default=8, ge=1, le=100_000, description="of all nodes together, repeated ones included"
    )
    requests_at_once: int = Field(default=5, ge=1, le=10_000, description="that may be made at once after a quiet time")
    deadline_ms: int = Field(
        default=limits.classify_ms_max, ge=5_000, le=120_000, description="all attempts for one page"
    )

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, value: str) -> str:
        """A key goes over no network in clear."""
        if not value:
            return value
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("an address like https://host/v1")
        if parts.username is not None or parts.password is not None:
            raise ValueError("no name and no password may stand in it: the key has a file of its own")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise ValueError("http only for an address of this machine: the key would go over the network in clear")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _nothing_is_ignored(self) -> Self:
        foreign = sorted(self.model_fields_set - {"provider"})
        if self.provider == "local" and foreign:
            raise ValueError(f"{foreign[0]} has no meaning with provider 'local'")
        return self


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine, whoever is asked."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class NodeSettings(BaseSettings):
    """All sections; see each."""

    model_config = SettingsConfigDict(
        env_prefix="PROMOVOLVE_NODE_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    cluster: ClusterSection
    node: NodeSection
    wire: WireSection
    store: StoreSection
    membership: MembershipSection = MembershipSection()
    split_brain: SplitBrainSection = SplitBrainSection()
    replication: ReplicationSection = ReplicationSection()
    classifier: ClassifierSection = ClassifierSection()

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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OperatingError("E-CONFIG", f"{path}: not TOML: {error}") from None
    try:
        return NodeSettings(**document)
    except ValidationError as error:
        first = error.errors()[0]
        raise OperatingError("E-CONFIG", f"{path}: {_words(first)}") from None
    except BadInput as error:
        raise OperatingError("E-CONFIG", f"{path}: {error.message}") from None


_NUMBER: Final = "a whole number"
_WANTED: Final = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float", "int_parsing_size"), _NUMBER),
    **dict.fromkeys(("float_parsing", "float_type", "finite_number"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    **dict.fromkeys(("string_type", "path_type"), "a text"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "a table"),
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
    "literal_error": "one of {expected}",
    "enum": "one of {expected}",
}


def _words(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] in _WANTED:
        given = f"{error['input']!r} is not " if isinstance(error["input"], (str, int, float)) else "not "
        return f"{place}: {given}{_WANTED[error['type']].format_map(error.get('ctx', {}))}"
    if error["type"] != "extra_forbidden":
        return f"{place}: {error['msg'].removeprefix('Value error, ')}"
    section, _, key = place.rpartition(".")
    fields = NodeSettings.model_fields
    owner: Any = fields[section].annotation if section in fields else NodeSettings
    near = difflib.get_close_matches(key, owner.model_fields, 1)
    return f"{place}: no such setting" + (f"; did you mean {near[0]!r}?" if near else "")
