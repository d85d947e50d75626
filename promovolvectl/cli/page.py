"""`page classify|list`."""

from __future__ import annotations

from typing import Annotated

import typer

from node.admin.protocol import ClassificationShow, ClassifyText, GetPages, PageList
from node.core.limits import chunk_bytes
from promovolvectl.cli.domain import SHOWS, SiteId
from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.page_text import read, text_of
from promovolvectl.cli.paging import paged
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.upload import upload

app = group("Pages: classify a text, list what is classified.")


@leaf(
    app,
    "classify",
    does="What a text is about, in categories of the IAB Content Taxonomy.",
    changes="Stores nothing and starts no auction: it only asks the classifier.",
    examples=(
        "promovolvectl page classify article.txt",
        "curl -s https://example.com/ | promovolvectl page classify -",
    ),
    exits=(ExitStatus.LOCAL_FILE,),
)
async def classify(
    run: Run,
    source: Annotated[
        str, typer.Argument(metavar="FILE|URL|-", show_default=False, help="Text or HTML; - reads standard input.")
    ],
) -> Answer:
    page = read(source)
    text = text_of(page)
    request = ClassifyText(text=text, html=page.html)
    document = text.encode()
    if len(document) > chunk_bytes:
        request = ClassifyText(transfer=await upload(run.ask, document), html=page.html)
    return answer_of("Classification", *await run.ask(request, ClassificationShow))


@leaf(
    app,
    "list",
    does="The pages of a site that were classified, and whether they are fresh.",
    changes="Reads only. Long lists come page by page; --limit N asks for no more than that.",
    examples=("promovolvectl page list example.com", "promovolvectl page list example.com --filter fresh=no"),
    exits=SHOWS,
)
async def list_(run: Run, site: SiteId) -> Answer:
    return answer_of("PageList", *await paged(run, GetPages(site=site), PageList))
