"""`help [TOPIC]`."""

from __future__ import annotations

import difflib
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
    does="A text on what holds for all commands, or a command's own help; without a topic, their list.",
    changes="Asks nobody and changes nothing. A command's own help is 'NOUN VERB --help'.",
    examples=("promovolvectl help exit-codes", "promovolvectl help sim", "promovolvectl help"),
    exits=(ExitStatus.NOT_FOUND,),
    asks=False,
)
def help_(
    run: Run,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]…", show_default=False, help="Such as output.")
    ] = None,
) -> Answer:
    topic = " ".join(words or ())
    if not topic:
        listed = TopicList(items=tuple(TopicName(topic=name, about=text.about) for name, text in TOPICS.items()))
        return answer_of("TopicList", listed, run.local_meta())
    found = TOPICS.get(topic)
    if found is None:
        from promovolvectl.cli.naming import named  # the tree leads here, too

        commands = [" ".join(command)] if (command := named(words or ())) else _commands(topic)
        if command or commands == [topic]:
            from promovolvectl.cli.tree import help_of  # the tree leads here, too

            about, text = help_of(commands[0].split())
            return Answer("Topic", plain(Topic(topic=commands[0], about=about, text=text)), run.local_meta(), text=text)
        others = f"\ncommands of that name: {', '.join(commands)}" if commands else ""
        raise CommandFailed(
            ExitStatus.NOT_FOUND,
            "E-NOT-FOUND",
            f"there is no topic {topic!r}; known: {', '.join(TOPICS)}.{did_you_mean(topic, TOPICS)}{others}",
            hint=f"promovolvectl {commands[0]} --help" if commands else "promovolvectl help",
        )
    reply = Topic(topic=topic, about=found.about, text=found.text)
    return Answer("Topic", plain(reply), run.local_meta(), text=found.text)


def _commands(topic: str) -> list[str]:
    """Commands that are called so: by their whole name, or by its last words; else those with nearly such a name."""
    if topic in NOUNS:
        return [topic]
    from promovolvectl.cli.walk import leaves  # every noun is loaded: only for who asks for what is no topic

    names = [leaf.words for leaf in leaves()]
    paths = dict.fromkeys(" ".join(words[:end]) for words in names for end in range(1, len(words) + 1))
    found = [path for path in paths if path == topic or path.endswith(f" {topic}")]
    close = difflib.get_close_matches(topic, {*paths, *(path.split()[-1] for path in paths)}, n=1, cutoff=0.75)
    return found or [path for path in paths if path in close or path.split()[-1] in close]
