"""`python -m node`: from the command line to the exit status. What a process is made of is in `node/wiring`.

Exit status: 0 stopped or drained, 15 stopped although a phase of its drain overran or was skipped, 16 unusable
configuration, key or data, 17 local file trouble, 21 removed by the cluster (another incarnation took the name, or a
split-brain decision went against this side), 143 told to stop before it had started.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path

import setproctitle

from node.actors import memory
from node.core import grace, supervisor
from node.core.errors import OperatingError
from node.core.fault_signals import arm_from_environment
from node.core.settings import NodeSettings, load_settings
from node.engine.config import Exit
from node.wiring import signals
from node.wiring.log_lines import LogLines
from node.wiring.logring import LogRing
from node.wiring.process import Process

EXIT_MISMATCH, EXIT_OVERRAN, EXIT_CONFIG, EXIT_LOCAL, EXIT_REMOVED = 14, 15, 16, 17, 21
EXIT_EARLY = 128 + signal.SIGTERM

_log = logging.getLogger("node")


def run(argv: list[str]) -> int:
    """One node process, from its settings file to its exit status."""
    parser = argparse.ArgumentParser(prog="python -m node", description="One node of a promovolve cluster.")
    parser.add_argument("--config", required=True, type=Path, help="the node's settings (TOML)")
    arguments = parser.parse_args(argv)
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setFormatter(LogLines("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[stderr])
    ring = LogRing()
    logging.getLogger().addHandler(ring)
    try:
        settings = load_settings(arguments.config)
        armed = arm_from_environment()
        if armed:
            _log.warning("faults are armed: %s", armed)
        _say_grace(settings)
        memory.search_rarely()
        setproctitle.setproctitle(f"promovolve-node {settings.node.name} ({settings.cluster.name})")
        with contextlib.suppress(ImportError):
            import uvloop

            return uvloop.run(_main(settings, ring))
        return asyncio.run(_main(settings, ring))
    except OperatingError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        sys.stderr.write(f"{error.code}: {error.message}{hint}\n")
        if error.code == "E-OTHER-CLUSTER":
            return EXIT_MISMATCH
        return EXIT_LOCAL if error.code.startswith("E-STORE") else EXIT_CONFIG


def _say_grace(settings: NodeSettings) -> None:
    """P67: both numbers, at every start."""
    found = supervisor.patience()
    _log.info("%s", grace.line(settings.node.drain_deadline_s, found))
    short = grace.why_short(settings.node.drain_deadline_s, found)
    if short:
        _log.warning("%s", short)


async def _main(settings: NodeSettings, ring: LogRing) -> int:
    process = Process(settings, ring)
    starting = asyncio.create_task(process.start(), name="start")
    signals.on_stop(starting.cancel)  # until the process has signals of its own, as the last step of its start
    try:
        await starting
        memory.settle()
        ended = await process.ended
        _log.info("ends: %s", ended.reason)
    except asyncio.CancelledError:
        if not starting.cancelled():
            raise
        sys.stderr.write("E-STOPPED: told to stop before it had started; nothing was taken over\n")
        return EXIT_EARLY
    finally:
        await process.close()
    return _status(ended)  # whoever reads a dead node's log looks at its last line


def _status(ended: Exit) -> int:
    if ended.misfit:
        sys.stderr.write(f"E-MISFIT: this node can't join as it is set up: {ended.reason}\n")
        return EXIT_MISMATCH
    if ended.removed:
        sys.stderr.write(f"E-REMOVED: the cluster removed this node: {ended.reason}\n")
        return EXIT_REMOVED
    if ended.overran:
        sys.stderr.write("E-OVERRAN: not everything was handed over; the rest is recovered as after a crash\n")
        return EXIT_OVERRAN
    return 0
