"""Writes configs/every-key.toml from the settings' model: every key with its default or an example, and what it says.

`python -m scripts.every_key`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from node.core.settings import NodeSettings
from scripts import generated

TARGET = generated.ROOT / "configs" / "every-key.toml"
HEAD = """\
# Every key of a node's settings, written by `python -m scripts.every_key`: do not edit.
# A key without a default stands with an example. Keys behind a '#' have no meaning beside the others here.
# Each can be overridden by the environment: PROMOVOLVE_NODE_<SECTION>__<KEY>.
"""


def every_key() -> str:
    """The text of the file."""
    lines = [HEAD]
    for section, field in NodeSettings.model_fields.items():
        model: Any = field.annotation
        summary = " ".join((model.__doc__ or "").split())
        lines += [f"# {summary}", f"[{section}]"]
        foreign = _foreign(section)
        for key, value in model.model_fields.items():
            off = "# " if key in foreign else ""
            lines += [f"# {_says(key, value)}", f"{off}{key} = {json.dumps(_shown(value))}"]
        lines.append("")
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """The file as it should be."""
    return {TARGET: every_key()}


def _foreign(section: str) -> set[str]:
    """Keys that the section's default kind, or provider, refuses."""
    taken = {"store": {"kind", "path"}, "classifier": {"provider"}}.get(section)
    if taken is None:
        return set()
    model = NodeSettings.model_fields[section].annotation
    return set(model.model_fields) - taken  # type: ignore[union-attr]


def _shown(value: FieldInfo) -> object:
    return value.examples[0] if value.examples else value.default


def _says(key: str, value: FieldInfo) -> str:
    """One line: what it is for, what it may be, and whether it may be left out."""
    if not value.description:
        raise SystemExit(f"{key}: give the field a description")
    choices = [json.dumps(choice) for choice in get_args(value.annotation) if isinstance(choice, str)]
    bounds = {name: getattr(rule, name) for rule in value.metadata for name in ("ge", "le") if hasattr(rule, name)}
    parts = [value.description]
    if not all(choice in value.description for choice in choices):
        parts.append(" or ".join(choices))
    if bounds:
        parts.append(f"{bounds['ge']} to {bounds['le']}")
    if value.is_required():
        parts.append("required")
    elif not value.examples:
        parts.append("this is the default")
    return "; ".join(parts)


if __name__ == "__main__":
    sys.exit(generated.main("every_key", __doc__, pages, sys.argv[1:]))
