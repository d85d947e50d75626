"""A cluster of real processes as its operator meets it: by the installed command and by HTTP, nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from overheard import EVERYBODY
from warm_command import Took, warm

CTL = str(Path(sys.executable).with_name("promovolvectl"))
COMMAND_S = 150
POLL_S = 0.1
NOT_NOW = 5
T = TypeVar("T")


class CommandError(AssertionError):
    """A command ended with another status than was expected."""


def eventually(look: Callable[[], T], holds: Callable[[T], bool], within_s: float, what: str) -> T:
    """What `look` finds as soon as `holds` says so; fails with the last finding when the time is over."""
    until = time.monotonic() + within_s
    while True:
        found = look()
        if holds(found):
            return found
        if time.monotonic() >= until:
            raise AssertionError(f"{what} did not come to hold in {within_s:g} s; last found: {found!r}")
        time.sleep(POLL_S)


class Cluster:
    """One cluster in one folder, with a configuration of its own. `within` stands before each command."""

    def __init__(self, folder: Path, within: tuple[str, ...] = ()) -> None:
        self.data = folder / "data"
        self._within = within
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith("PROMOVOLVE")},
            "PROMOVOLVECTL_CONFIG": str(folder / "config.toml"),
            "XDG_STATE_HOME": str(folder / "state"),
            "NO_COLOR": "1",
        }
        self.http = ""
        self._overheard = EVERYBODY.meet(self.env["PROMOVOLVECTL_CONFIG"], folder, self.data)

    # ---- commands

    def run(self, *words: str, status: int = 0) -> Took:
        """One command; raises CommandError when it ends with another status."""
        done = self._ended(words)
        if done.status != status:
            raise CommandError(
                f"{' '.join(words)}: status {done.status} instead of {status}\n{done.out[-2000:]}\n{done.err}"
            )
        return done

    def ask(self, *words: str, status: int = 0) -> Any:
        """The document that a command answers with."""
        return json.loads(self.run(*words, "-o", "json", status=status).out)

    def _ended(self, words: tuple[str, ...]) -> Took:
        if self._within:
            command = [*self._within, CTL, *words]
            done = subprocess.run(command, env=self.env, text=True, capture_output=True, timeout=COMMAND_S, check=False)
            found = Took(words, done.returncode, done.stdout, done.stderr)
        else:
            found = warm().run(words, self.env, COMMAND_S)
        self._overheard.heard(words, found.out, found.err)
        return found

    def begun(self, *words: str) -> subprocess.Popen[str]:
        """A command that runs beside others; `ended` has its document."""
        return subprocess.Popen(
            [*self._within, CTL, *words, "-o", "json"],
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ended(self, command: subprocess.Popen[str], status: int | None = 0) -> Any:
        """The document of a command that was begun; `status` None: however it ended, with its error's document if it
        printed no other."""
        out, error = command.communicate(timeout=COMMAND_S)
        self._overheard.heard([str(word) for word in command.args], out, error)  # type: ignore[union-attr]
        if status is not None and command.returncode != status:
            raise CommandError(f"{command.args}: status {command.returncode} instead of {status}\n{out}\n{error}")
        return json.loads(out or error.strip().splitlines()[-1])

    def refused(self, *words: str, status: int) -> Any:
        """The error document of a command that must fail so."""
        return json.loads(self.run(*words, "-o", "json", status=status).err.strip().splitlines()[-1])

    def up(self, *words: str) -> Any:
        found = self.ask("up", "--data", str(self.data), *words)
        self.http = found["http"]
        return found

    def down(self) -> Any:
        return self.ask("down", "--data", str(self.data))

    def status(self) -> Any:
        """The status, also while some nodes do not answer."""
        done = self._ended(("cluster", "status", "-o", "json"))
        return json.loads(done.out) if done.out else None

    def health(self) -> Any:
        """Why all is not well, whatever the answer's exit status."""
        return json.loads(self._ended(("cluster", "health", "-o", "json")).out)

    def whole(self, within: str = "60s", nodes: int = 4) -> None:
        """Waits until all nodes are there and agree, and every page's slots are filled."""
        conditions = ("converged", f"nodes={nodes}", "shards=allocated", "replicas=agree", "coverage=1.0")
        self.run("cluster", "wait", "-t", within, *(word for c in conditions for word in ("--for", c)))

    def restore(self, *words: str, nodes: int = 4) -> None:
        """Starts what is not there until all is whole. Once is not enough: a node that the others have put out may hear
        of it, and end, only behind that."""

        def whole() -> Took:
            self.up(*words)
            conditions = ("converged", f"nodes={nodes}", "shards=allocated", "replicas=agree", "coverage=1.0")
            return self._ended(("cluster", "wait", "-t", "20s", *(w for c in conditions for w in ("--for", c))))

        eventually(whole, lambda took: took.status == 0, 90, f"{nodes} nodes that agree, and every slot filled")

    def even(self) -> None:
        """Evens the shards out now, for who compares where they are: after a node's return the coordinator does it by
        itself some seconds later, which may be in the midst of a test. Waits where it is refused for now."""
        words = ("shard", "rebalance", "--yes", "-t", "60s", "-o", "json")
        found = eventually(lambda: self._ended(words), lambda took: took.status != NOT_NOW, 30, "that shards may move")
        assert found.status == 0, found

    def coordinator(self) -> str:
        """Who coordinates. A cluster is whole without one, too: a lease that the store's absence let lapse is taken
        some seconds after its return."""
        name: str = eventually(lambda: self.status()["coordinator"], bool, 30, "that somebody coordinates")
        return name

    def replicas_agree(self) -> None:
        """Waits until all four replicas are found equal: what is written meanwhile reaches each at its own moment."""

        def differing() -> list[str]:
            rows = self.ask("serveindex", "maps")["items"]
            return [row["map"] for row in rows if not row["agree"] or len(row["replicas"]) != 4]

        eventually(differing, lambda found: not found, 30, "four equal replicas")

    # ---- processes

    def start(self, name: str, fault: str = "") -> int:
        """Starts a node, armed to die or stop at a step (`POINT:kill|stop[:N]`, see core/faultpoints); its pid."""
        plain = self.env
        self.env = {**plain, "PROMOVOLVE_FAULT_AT": fault} if fault else plain
        try:
            self.ask("node", "start", name, "--data", str(self.data))
        finally:
            self.env = plain
        return self.pids()[name]

    def pids(self) -> dict[str, int]:
        """The pid of each node that answers."""
        return {row["name"]: row["pid"] for row in self.ask("node", "list")["items"] if row["pid"]}

    def kill(self, *names: str) -> None:
        """`kill -9`, all at once, and waits until the kernel has ended them."""
        pids = [pid for name, pid in self.pids().items() if name in names]
        assert len(pids) == len(names)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        ended(*pids)

    def last_resort(self) -> None:
        """After the tests: nothing that they started may stay, also when `down` failed."""
        for file in (self.data / "run").glob("*.pid"):
            pid, started, _ = file.read_text().split()
            if runs(int(pid)) and start_time(int(pid)) == started:
                os.kill(int(pid), signal.SIGKILL)
        EVERYBODY.leave(self.env["PROMOVOLVECTL_CONFIG"])

    # ---- the domain

    def post(self, path: str, document: Any) -> tuple[int, Any]:
        """Status and document of one POST; error statuses are answers, too."""
        body = json.dumps(document).encode()
        request = urllib.request.Request(self.http + path, body, {"Content-Type": "application/json"}, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                answered = answer.read()
                self._overheard.served(answered)
                return answer.status, json.loads(answered or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")

    def serve(self, site: str, url: str, slots: list[dict[str, Any]]) -> dict[str, Any]:
        """Winner (or None) of each slot."""
        status, answer = self.post("/v1/serve/batch", {"pub": site, "url": url, "imp": slots})
        assert status == 200, answer
        return {seat["id"]: seat.get("winner") for seat in answer["seatbid"]}

    def sites(self) -> list[Any]:
        found: list[Any] = self.ask("site", "list")["items"]
        return found

    def state(self) -> dict[str, Any]:
        """What must never be lost: approvals, classifications, budgets, spend, counts."""
        campaigns = self.ask("campaign", "list")["items"]
        spent = ("campaign", "status", "max_cpm", "daily_budget", "spent_today", "impressions_count", "clicks_count")
        return {
            "approved": {s["site"]: sorted(s["approved"]) for s in (self._site(x["site"]) for x in self.sites())},
            "pages": {
                site["site"]: sorted(
                    (p["url"], p["classified_at"], [c["id"] for c in p["categories"]]) for p in self.pages(site["site"])
                )
                for site in self.sites()
            },
            "campaigns": [{key: row[key] for key in spent} for row in campaigns],
            "advertisers": [
                (row["advertiser"], row["daily_budget"], row["spent_today"])
                for row in self.ask("advertiser", "list")["items"]
            ],
        }

    def settled_state(self) -> dict[str, Any]:
        """The state once what was on its way has arrived: the same twice in a row."""
        seen: list[dict[str, Any]] = [self.state()]

        def look() -> bool:
            seen.append(self.state())
            return seen[-1] == seen[-2]

        eventually(look, bool, 30, "a state that stays")
        return seen[-1]

    def advertisers_have_all(self) -> bool:
        """Whether no advertiser lacks what its campaigns were charged: after a node's death that comes with their
        totals, some minutes later."""
        charged: defaultdict[str, Decimal] = defaultdict(Decimal)
        for row in self.ask("campaign", "list")["items"]:
            charged[row["advertiser"]] += Decimal(row["spent_today"])
        rows = self.ask("advertiser", "list")["items"]
        return all(Decimal(row["spent_today"]) >= charged[row["advertiser"]] for row in rows)

    def pages(self, site: str) -> list[Any]:
        found: list[Any] = self.ask("page", "list", site)["items"]
        return found

    def _site(self, site: str) -> Any:
        return self.ask("site", "show", site)

    def shards(self) -> dict[int, Any]:
        return {row["shard"]: row for row in self.ask("shard", "list")["items"]}

    def owner_of(self, site: str) -> str:
        owner: str = self.ask("shard", "where", "site", site)["node"]
        return owner

    def logs(self) -> Iterator[str]:
        """The end of each node's log, for who looks at a failure."""
        for file in sorted((self.data / "logs").glob("*.log")):
            yield f"---- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-15:])


def runs(pid: int) -> bool:
    """Whether a process is there and not only waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ended(*pids: int, within_s: float = 10) -> None:
    """Waits until these processes have ended."""
    eventually(lambda: [pid for pid in pids if runs(pid)], lambda left: not left, within_s, "the end of processes")


def stands_still(pid: int) -> bool:
    """Whether SIGSTOP has taken it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def start_time(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
