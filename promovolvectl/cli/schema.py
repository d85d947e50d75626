"""`schema [KIND]`."""

from __future__ import annotations

import json
from typing import Annotated

from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import named
from promovolvectl.cli.render import Answer, plain
from promovolvectl.cli.run import Run
from promovolvectl.cli.schemas import names, schema_of
from promovolvectl.cli.select import did_you_mean
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import SchemaList, SchemaName

app = group("The JSON Schema of a kind of answer.")


@leaf(
    app,
    "schema",
    does="The JSON Schema of a kind of answer; without a kind, their names.",
    changes="Asks nobody and changes nothing.",
    examples=("promovolvectl schema ClusterStatus", "promovolvectl schema -o name"),
    exits=(ExitStatus.NOT_FOUND,),
    asks=False,
)
def schema(
    run: Run,
    kind: Annotated[str, named("schema", "[KIND]", "Such as ClusterStatus.")] = "",
) -> Answer:
    known = names()
    if not kind:
        listed = SchemaList(items=tuple(SchemaName(kind=name) for name in known))
        return Answer("SchemaList", plain(listed), run.local_meta())
    if kind not in known:
        raise CommandFailed(
            ExitStatus.NOT_FOUND,
            "E-NOT-FOUND",
            f"there is no kind {kind!r}.{did_you_mean(kind, known)}",
            hint="promovolvectl schema -o name",
        )
    document = schema_of(kind)
    return Answer("Schema", document, run.local_meta(), raw=True, text=json.dumps(document, indent=2))
