"""`help [TOPIC]`."""

from __future__ import annotations

from typing import Annotated

import typer

from promovolvectl.cli.leaf import group, leaf
from promovolvectl.cli.nouns import NOUNS
from promovolvectl.cli.render import Answer, answer_of, plain
from promovolvectl.cli.run import Run
from promovolvectl.cli.select import did_you_mean
from promovolvectl.cli.topics import TOPICS
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.own_kinds import Topic, TopicList, TopicName

app = group("What holds for all commands: output, exit statuses, plans, configuration.")


@leaf(
    app,
    "help",
    does="A text on what holds for all commands; without a topic, their list.",
    changes="Asks nobody and changes nothing. A command's own help is 'NOUN VERB --help'.",
    examples=("promovolvectl help exit-codes", "promovolvectl help"),
    exits=(ExitStatus.NOT_FOUND,),
    asks=False,
)
def help_(
    run: Run, topic: Annotated[str, typer.Argument(metavar="[TOPIC]", show_default=False, help="Such as output.")] = ""
) -> Answer:
    if not topic:
        listed = TopicList(items=tuple(TopicName(topic=name, about=text.about) for name, text in TOPICS.items()))
        return answer_of("TopicList", listed, run.local_meta())
    found = TOPICS.get(topic)
    if found is None:
        noun = topic in NOUNS
        raise CommandFailed(
            ExitStatus.NOT_FOUND,
            "E-NOT-FOUND",
            f"there is no topic {topic!r}; known: {', '.join(TOPICS)}.{did_you_mean(topic, TOPICS)}",
            hint=f"promovolvectl {topic} --help" if noun else "promovolvectl help",
        )
    reply = Topic(topic=topic, about=found.about, text=found.text)
    return Answer("Topic", plain(reply), run.local_meta(), text=found.text)
