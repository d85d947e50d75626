"""`cluster drill list|run|show`: failures rehearsed on the living cluster."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from node.admin.protocol.diagnosis import DrillList, GetDrills, StageDrill
from node.admin.protocol.drills import PROVES
from promovolvectl.cli.changing import Change, planned
from promovolvectl.cli.cluster_looking import app
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.names import bare, naming
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import did_you_mean, usage
from promovolvectl.client.exit_codes import ExitStatus

__all__ = ["app"]
drill = group("Failures rehearsed on the living cluster, where they hurt nobody.")
app.add_typer(drill, name="drill")
RUN_MS: Final = 110_000  # a shard is handed over twice
Site = Annotated[str, naming("--site", "site", "SITE", "A site that can take it.")]


def _known(value: Any) -> Any:
    """A drill that there is, before anything else of the line is looked at; raises CommandFailed (2)."""
    name = bare("drill")(value)
    if name and name not in PROVES:
        text = f"there is no drill {name!r}; there are {', '.join(PROVES)}.{did_you_mean(name, PROVES)}"
        raise usage("DRILL", text, "promovolvectl cluster drill list")
    return name


Name = Annotated[
    str, typer.Argument(metavar="DRILL", callback=_known, show_default=False, help=f"One of {', '.join(PROVES)}.")
]


@leaf(
    drill,
    "list",
    does="The drills there are, what each proves, and when that was last proven.",
    changes="Reads only. Runs are events: as long as nodes keep those. There is none that plants an owner under an old "
    "epoch: the state store takes no such thing, and 'run fence' shows that it refuses its writes.",
    examples=("promovolvectl cluster drill list", "promovolvectl cluster drill list -o json --query 'items[].last'"),
    shows="DrillList",
    gathers=True,
)
async def list_(run: Run) -> Answer:
    return answer_of("DrillList", *await run.ask(GetDrills(), DrillList))


@leaf(
    drill,
    "show",
    does="The runs of one drill.",
    changes="Reads only.",
    examples=("promovolvectl cluster drill show fence", "promovolvectl cluster drill show fence -o json"),
    exits=(ExitStatus.NOT_FOUND,),
    shows="DrillList",
    gathers=True,
)
async def show(run: Run, name: Name) -> Answer:
    return answer_of("DrillList", *await run.ask(GetDrills(drill=name), DrillList))


@planned(
    drill,
    "run",
    does="Rehearse a failure at one site: fence and term write as a former owner, move sends its shard there and back, "
    "deadletter tells it what nobody handles.",
    changes="Nothing that stays: a fenced write changes nothing, a moved shard comes home, a dead letter is forgotten. "
    "Refused when the cluster is not healthy. Ends with 15 when what it proves does not hold.",
    examples=(
        "promovolvectl cluster drill run fence --site example.com",
        "promovolvectl cluster drill run move --site example.com --yes -o json",
    ),
)
def run_(run: Run, name: Name, site: Site, **given: Any) -> Change:
    stage = StageDrill(drill=name, site=site, reason=given["reason"])
    return Change(stage, answer_ms=run.timeout_ms(RUN_MS))
