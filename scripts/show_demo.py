"""Starts the demonstration cluster and shows it: status, a page classified, an ad served and why, what to type next."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

CTL = str(Path(sys.executable).with_name("promovolvectl"))
SHOWN = ".venv/bin/promovolvectl"


def main() -> int:
    started = subprocess.run([CTL, "up", "--demo", "-o", "json"], stdout=subprocess.PIPE, text=True, check=False)
    if started.returncode:
        return started.returncode
    up = json.loads(started.stdout)
    show("The cluster", "cluster", "status")
    site = ask("site", "list")["items"][0]
    page = ask("page", "list", site["site"])["items"][0]
    text = Path(__file__).parent.parent / "promovolvectl/local/demo/pages"
    sample = sorted(text.glob("*.txt"))[0]
    show(f"One page classified: {sample.name}", "page", "classify", str(sample))
    served = serve(up["http"], site, page["url"])
    seat = next((s for s in served["seatbid"] if "winner" in s), None)
    if seat is None:
        sys.stderr.write(f"nothing was served for {page['url']}: {json.dumps(served)}\n")
        return 10
    heading(f"One ad served: {page['url']}, slot {seat['id']}")
    sys.stdout.write(f"{seat['winner']['creativeId']} of campaign {seat['winner']['campaignId']}\n")
    show("Why", "serve", "explain", seat["winner"]["requestId"])
    heading("Next")
    for command, what in (
        ("dashboard", "watch the cluster live"),
        ("node drain entity-1", "see a node hand everything over"),
        ("--help", "everything else"),
        ("down", "stop it; its data stay"),
    ):
        sys.stdout.write(f"  {SHOWN} {command:22} {what}\n")
    return 0


def heading(text: str) -> None:
    sys.stdout.write(f"\n── {text}\n")
    sys.stdout.flush()


def show(title: str, *arguments: str) -> None:
    """Runs a command as a person would, and lets its output through."""
    heading(title)
    subprocess.run([CTL, *arguments], check=False)


def ask(*arguments: str) -> Any:
    done = subprocess.run([CTL, *arguments, "-o", "json"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def serve(base_url: str, site: dict[str, Any], url: str) -> Any:
    """What a page's tag asks for: an ad for each of its slots."""
    imp = [{"id": slot["slot"], "w": slot["width"], "h": slot["height"]} for slot in site["slots"]]
    body = json.dumps({"pub": site["site"], "url": url, "imp": imp}).encode()
    request = urllib.request.Request(f"{base_url}/v1/serve/batch", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
