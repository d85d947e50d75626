"""One command on its way: its flags, the cluster it asks, the streams it writes to."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO, TypeVar

import msgspec

from node.admin.protocol import Meta
from node.core.clock import SystemClock, rfc3339
from promovolvectl.cli import ci, terminal, text
from promovolvectl.cli.duration import milliseconds
from promovolvectl.cli.hints import elsewhere, settled
from promovolvectl.cli.options import TIMEOUT_DEFAULT_MS, Flags, first_of, format_named, one_of, repeated
from promovolvectl.cli.render import MACHINE, Answer, cells, heads, render
from promovolvectl.client import paths
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile, ProfileFile, find, load_file, write_profile
from promovolvectl.client.visible import visible

if TYPE_CHECKING:
    from promovolvectl.client.calls import AdminClient

_ADDRESSED = (
    "'promovolvectl node list --columns name,admin' without --endpoint tells where the profile's nodes answer operators"
)
_MENDS = (("profile", "set"), ("config", "set"))
_ANNOTATED_ROWS = 10  # an annotation is read at a glance; the summary has them all
Reply = TypeVar("Reply", bound=msgspec.Struct)


class Run:
    """What a command's function is given. `going_on` is printed when the person stops waiting: how to go on."""

    def __init__(
        self, flags: Flags, env: Mapping[str, str], out: TextIO, err: TextIO, stdin: TextIO, typed: Sequence[str]
    ) -> None:
        self.flags = flags
        self.env = env
        self.out = out
        self.err = err
        self.stdin = stdin
        self._typed = typed
        self.going_on: tuple[str, ...] = ()
        self._mends = any(pair in _MENDS for pair in itertools.pairwise(typed))
        self._addressed = False  # by --endpoint, or its variable: those nodes and no others
        self._colours = settled("--color", lambda word: one_of("--color", word, terminal.COLOURS), flags.color, env)
        self._times = settled("--time", lambda word: one_of("--time", word, terminal.TIMES), flags.time, env)
        self._ci = settled("--ci", ci.checked, flags.ci, env)
        self.config = paths.config_file(env)
        self._profile: Profile | None = None
        self._client: AdminClient | None = None
        self.format = settled("--output", format_named, flags.output, env, *self._saved("output"), mends=self._mends)
        self._groups = ci.Groups(err) if self._ci and not self.machine else None

    @property
    def machine(self) -> bool:
        return self.format in MACHINE

    @property
    def profile_name(self) -> str:
        return first_of(self.flags.profile, self.env.get("PROMOVOLVECTL_PROFILE", ""))

    @property
    def profile(self) -> Profile:
        """The profile that precedence chose, with the endpoints and key file that flags and environment put over it."""
        if self._profile is None:
            self._profile = self._resolved()
        return self._profile

    @property
    def client(self) -> AdminClient:
        if self._client is None:
            from promovolvectl.client.calls import AdminClient  # the codec and ZeroMQ are loaded
            from promovolvectl.client.link import open_link  # by those who ask a cluster only

            self._client = AdminClient(self.profile, open_link, self._bound)
        return self._client

    @property
    def out_terminal(self) -> terminal.Terminal:
        return self._seen(self.out)

    @property
    def err_terminal(self) -> terminal.Terminal:
        return self._seen(self.err)

    def _seen(self, stream: TextIO) -> terminal.Terminal:
        return replace(terminal.of_stream(stream, self.env, self._colours), times=self._times)

    def moment(self, at: str) -> str:
        """When something was, as `--time` wants it in a line for people; machine formats keep it as it is."""
        if self.machine or self.format in ("csv", "value"):
            return at
        return text.moment(at, self._times, rfc3339(SystemClock().wall_ms()))

    def again(self, *more: str) -> str:
        """The line as it was typed, with these words more; ready to be pasted."""
        return repeated(self._typed, more)

    def without(self, flag: str) -> str:
        """The line as it was typed, without a flag that stands alone; ready to be pasted."""
        return repeated([word for word in self._typed if word != flag], ())

    def instead(self, word: str, other: str) -> str:
        """The line as it was typed, with one word for another; ready to be pasted."""
        return repeated([other if each == word else each for each in self._typed], ())

    def turned(self, word: str, other: str) -> str:
        """The line as it was typed, with two words in each other's place; ready to be pasted."""
        places = {word: other, other: word}
        return repeated([places.get(each, each) for each in self._typed], ())

    def may_prompt(self) -> bool:
        return terminal.may_prompt(self.env, self.stdin, self.err)

    def timeout_ms(self, default_ms: int = TIMEOUT_DEFAULT_MS) -> int:
        """How long to wait; `default_ms` is the command's own."""

        def length(text: str) -> int:
            return milliseconds(text) if text else default_ms

        saved, profile = self._saved("timeout")
        return settled("--timeout", length, self.flags.timeout, self.env, saved, profile, mends=self._mends)

    async def ask(self, params: msgspec.Struct, reply: type[Reply], wait_ms: int = 0) -> tuple[Reply, Meta]:
        """One request to the cluster; raises CommandFailed."""
        started = time.monotonic()
        try:
            return await self.client.ask(params, reply, wait_ms or self.timeout_ms())
        except CommandFailed as failed:
            if failed.nobody_there and self._addressed:
                failed.hint = _ADDRESSED  # nothing that is started by a profile's name would be there
            raise
        finally:
            if self.flags.verbose:
                where = self.client.endpoint
                took = (time.monotonic() - started) * 1000
                self.say(f"{type(params).__name__} to {where.admin if where else 'nobody'}: {took:.0f} ms", always=True)

    def folded(self, title: str) -> None:
        """In a CI job, what is said from here on is folded under a title, until another or an empty one."""
        if self._groups is not None and not self.flags.quiet:
            self._groups.enter(title)

    def say(self, line: str, *, always: bool = False) -> None:
        """A line on stderr: progress, a notice. `-q` silences it unless `always`."""
        if always or not self.flags.quiet:
            print(visible(line), file=self.err, flush=True)

    def emit(self, answer: Answer) -> ExitStatus:
        """Writes the answer and says what is missing from it; returns the command's status."""
        out = replace(self.out_terminal, now=answer.meta.observed_at)
        self.out.write(render(answer, self.flags.view(self.format), out))
        self.out.flush()
        if not (self.flags.quiet or self._enveloped(answer)):
            for missing in answer.meta.missing:
                self.say(f"missing: {missing.node} ({missing.reason} since {missing.since})")
            for warning in answer.meta.warnings:
                self.say(f"warning: {warning.text} ({warning.code})")
        if self._ci:
            self._tell_job(answer)
        if answer.status is ExitStatus.OK and answer.meta.missing and not self.flags.allow_partial:
            return ExitStatus.PARTIAL
        return answer.status

    def _tell_job(self, answer: Answer) -> None:
        """Annotations for what is not as it should be, and the answer as a table in the job's summary."""
        self.folded("")
        heading, *rows = cells(answer, self.flags.view("table"))
        told = heads(answer)
        if not self.machine:
            for missing in answer.meta.missing:
                text = f"{missing.node} did not answer: {missing.reason}"
                self.err.write(ci.annotation("warning", answer.kind, text) + "\n")
            if answer.status is not ExitStatus.OK:
                found = "\n".join((*told, *("  ".join(row) for row in rows[:_ANNOTATED_ROWS])))
                text = f"ended with {int(answer.status)}" + (f"\n{found}" if found else "")
                self.err.write(ci.annotation("error", answer.kind, text) + "\n")
        if problem := ci.append_summary(self.env, ci.table(answer.kind, told, heading, rows)):
            self.say(f"warning: {problem}")

    def _enveloped(self, answer: Answer) -> bool:
        """What is missing stands in the document already: the items of a list as lines have no envelope."""
        return self.machine and not (self.format == "jsonl" and "items" in answer.payload)

    def local_meta(self) -> Meta:
        """The meta of an answer that no cluster gave."""
        return Meta(
            cluster_name="",
            cluster_id="",
            observed_at=rfc3339(SystemClock().wall_ms()),
            observed_by="promovolvectl",
        )

    def close(self) -> None:
        self.folded("")  # what failed within a group is not hidden in it
        if self._client is not None:
            self._client.close()
            self._client = None

    def _saved(self, field: str) -> tuple[str, str]:
        """A default out of the profile, and the profile's name; commands that need no profile don't fail over a broken
        one."""
        try:
            profile = find(load_file(self.config), self.config, self.profile_name)
        except CommandFailed:
            return "", ""
        return getattr(profile, field), profile.name

    def _resolved(self) -> Profile:
        asked = tuple(self.flags.endpoint) or tuple(
            part.strip() for part in self.env.get("PROMOVOLVECTL_ENDPOINT", "").split(",") if part.strip()
        )
        file = load_file(self.config)
        nowhere = asked and not self.profile_name and not file.current
        profile = Profile() if nowhere else self._found(file)
        self._addressed = bool(asked)
        if asked:
            from promovolvectl.client.connect import host_and_port

            for address in asked:
                try:
                    host_and_port(address)
                except CommandFailed as failed:
                    if self.flags.endpoint:
                        raise
                    variable = "PROMOVOLVECTL_ENDPOINT"
                    raise elsewhere(failed, "--endpoint", variable, f"export {variable}=") from None
            known = {endpoint.admin: endpoint for endpoint in profile.endpoints}
            chosen = tuple(known.get(address, Endpoint(admin=address)) for address in asked)
            profile = msgspec.structs.replace(profile, endpoints=chosen)
        key_file = self.env.get("PROMOVOLVECTL_KEY_FILE", "")
        return msgspec.structs.replace(profile, key_file=key_file) if key_file else profile

    def _found(self, file: ProfileFile) -> Profile:
        try:
            return find(file, self.config, self.profile_name)
        except CommandFailed as failed:
            if self.profile_name and not self.flags.profile:
                failed.message = f"PROMOVOLVECTL_PROFILE: {failed.message}"
            raise

    def _bound(self, meta: Meta) -> None:
        """Remembers the cluster's id at first contact."""
        stored = load_file(self.config).profiles.get(self.profile.name)
        if stored is not None:
            named = msgspec.structs.replace(
                stored, name=self.profile.name, cluster_id=meta.cluster_id, cluster=meta.cluster_name
            )
            write_profile(self.config, named, make_current=False)


def of_process(flags: Flags, env: Mapping[str, str], typed: Sequence[str]) -> Run:
    """A run over this process's own streams. `typed`: the command line, without the program's name."""
    return Run(flags, env, sys.stdout, sys.stderr, sys.stdin, typed)
