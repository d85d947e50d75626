"""`coverage explain`."""

from __future__ import annotations

from node.admin.protocol import CoverageExplanation, ExplainCoverage
from promovolvectl.cli.domain import SHOWS, SiteId
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run

app = group("Why slots have no candidates, and what would fill them.")


@leaf(
    app,
    "explain",
    does="Each slot of a site: whether it has candidates, else why not and what would fill it.",
    changes="Reads only.",
    examples=(
        "promovolvectl coverage explain example.com",
        "promovolvectl coverage explain example.com --filter reason=below_floor -o json",
    ),
    exits=SHOWS,
)
async def explain(run: Run, site: SiteId) -> Answer:
    return answer_of("CoverageExplanation", *await run.ask(ExplainCoverage(site=site), CoverageExplanation))
