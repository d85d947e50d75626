"""`cluster status|health|wait|watch`."""

from __future__ import annotations

from node.admin.protocol import ClusterStatus, GetClusterHealth, GetClusterStatus, Health
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus

app = group("The cluster as a whole: status, health, waiting.")


@leaf(
    app,
    "status",
    does="What every node does, where shards are, and whether replicas agree.",
    changes="Reads only.",
    examples=("promovolvectl cluster status", "promovolvectl cluster status -o json --query 'nodes[].name'"),
)
async def status(run: Run) -> Answer:
    return answer_of("ClusterStatus", *await run.ask(GetClusterStatus(), ClusterStatus))


@leaf(
    app,
    "health",
    does="Whether the cluster is healthy, and what is not.",
    changes="Reads only.",
    examples=("promovolvectl cluster health", "promovolvectl cluster health -q || page-someone"),
    exits=(ExitStatus.UNHEALTHY,),
)
async def health(run: Run) -> Answer:
    reply, meta = await run.ask(GetClusterHealth(), Health)
    well = reply.state == "healthy"
    return answer_of("Health", reply, meta, ExitStatus.OK if well else ExitStatus.UNHEALTHY)
