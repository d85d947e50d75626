"""One round of actor measurements of one subject, in a process of its own: `python -m scripts.benchmarks.actor_subjects
NAME` prints rates per second and bytes per idle actor. A peer that is not installed says so and measures nothing.

Every subject does the same: tells to one actor, asks with 100 under way, tells to each of 1,000 actors in turn, and
actors that wait for their first message. Each checks that every message was handled.

Rates are per second of processor time. All subjects only compute, so on a machine of their own that is the same as
the clock's; on a shared one the clock would measure the neighbours.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import os
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

MANY = 1_000  # actors of the fan-out
ABREAST = 100  # asks under way at once
Row = dict[str, float]


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rate(count: int, work: Callable[[], object]) -> float:
    """Repetitions a second of processor time; the first run is not counted."""
    work()
    begun = time.process_time()
    work()
    return count / (time.process_time() - begun)


async def async_rate(count: int, work: Callable[[], Awaitable[object]]) -> float:
    await work()
    begun = time.process_time()
    await work()
    return count / (time.process_time() - begun)


def expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"{found} messages were handled instead of {wanted}")


class Tally:
    """Looks what it was sent and counts: what every subject's actor does with a message."""

    def __init__(self) -> None:
        self.seen = 0

    def receive(self, _context: object, message: object) -> None:
        if type(message) is object:
            self.seen += 1


def floor() -> Row:
    """A deque of (actor, message) and a loop of calls: what no scheduler can beat."""
    tallies = [Tally() for _ in range(MANY)]
    one = [tallies[0]] * MANY
    message = object()

    def run(actors: list[Tally]) -> None:
        queue: deque[tuple[Tally, object]] = deque()
        append, popleft = queue.append, queue.popleft
        for _ in range(100):
            for actor in actors:
                append((actor, message))
            while queue:
                to, item = popleft()
                to.receive(None, item)

    row = {"tell": rate(100 * MANY, lambda: run(one)), "fan_out": rate(100 * MANY, lambda: run(tallies))}
    expect(sum(tally.seen for tally in tallies), 400 * MANY)
    return row


def ours() -> Row:
    from scripts.benchmarks import actors, memory

    return actors.once() | {
        "bytes_idle": (bare := memory.once("bare"))["unmailed_bytes_each"],
        "bytes_after_mail": bare["bytes_each"],
    }


class QueueActor:
    """A task that takes (message, future or None) from its queue."""

    handled = 0

    def __init__(self) -> None:
        self.queue: asyncio.Queue[tuple[int, asyncio.Future[int] | None]] = asyncio.Queue()
        self.task = asyncio.create_task(self.run())

    async def run(self) -> None:
        while True:
            message, answer = await self.queue.get()
            QueueActor.handled += 1
            if answer is not None:
                answer.set_result(message)


async def queue_tell(actors: list[QueueActor], rounds: int) -> None:
    wanted = QueueActor.handled + len(actors) * rounds
    for number in range(rounds):
        for actor in actors:
            actor.queue.put_nowait((number, None))
        if number % MANY == MANY - 1 or len(actors) > 1:
            await asyncio.sleep(0)
    while QueueActor.handled < wanted:
        await asyncio.sleep(0)


async def queue_ask(actor: QueueActor, rounds: int) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(rounds):
        answers = [loop.create_future() for _ in range(ABREAST)]
        for number, answer in enumerate(answers):
            actor.queue.put_nowait((number, answer))
        await asyncio.gather(*answers)


def asyncio_queue() -> Row:
    """A task and an asyncio.Queue per actor."""

    async def play() -> Row:
        before = resident()
        idle = [QueueActor() for _ in range(10_000)]
        await asyncio.sleep(0)
        each = (resident() - before) / len(idle)
        one, many = QueueActor(), [QueueActor() for _ in range(MANY)]
        row = {
            "bytes_idle": each,
            "tell": await async_rate(100_000, lambda: queue_tell([one], 100_000)),
            "ask": await async_rate(20_000, lambda: queue_ask(one, 200)),
            "fan_out": await async_rate(50_000, lambda: queue_tell(many, 50)),
        }
        for actor in (one, *many, *idle):
            actor.task.cancel()
        return row

    return asyncio.run(play())


def pykka() -> Row:
    """A thread per actor."""
    import pykka

    class Actor(pykka.ThreadingActor):
        def __init__(self) -> None:
            super().__init__()
            self.seen = 0

        def on_receive(self, message: Any) -> Any:
            self.seen += 1
            return self.seen

    before = resident()
    many = [Actor.start() for _ in range(MANY)]
    each = (resident() - before) / MANY
    one = Actor.start()

    def tell(actors: list[Any], rounds: int) -> None:
        for number in range(rounds):
            for actor in actors:
                actor.tell(number)
        for answer in [actor.ask(0, block=False) for actor in actors]:
            answer.get()

    def ask(rounds: int) -> None:
        for _ in range(rounds):
            answers = [one.ask(number, block=False) for number in range(ABREAST)]
            for answer in answers:
                answer.get()

    row = {
        "bytes_idle": each,
        "tell": rate(20_000, lambda: tell([one], 20_000)),
        "ask": rate(5_000, lambda: ask(50)),
        "fan_out": rate(10_000, lambda: tell(many, 10)),
    }
    seen: Any = one.ask(0)
    expect(seen, 40_000 + 2 + 10_000 + 1)
    pykka.ActorRegistry.stop_all()
    return row


def thespian() -> Row:
    """Its base within one process, which runs an actor inside the sender's call."""
    from thespian.actors import Actor, ActorSystem

    class Counting(Actor):
        seen = 0

        def receiveMessage(self, message: Any, sender: Any) -> None:  # noqa: N802 - its name
            self.seen += 1
            if isinstance(message, str):
                self.send(sender, self.seen)

    system = ActorSystem("simpleSystemBase")
    one = system.createActor(Counting)
    before = resident()
    idle = [system.createActor(Counting) for _ in range(10_000)]
    each = (resident() - before) / len(idle)
    many = [system.createActor(Counting) for _ in range(MANY)]

    def tell(actors: list[Any], rounds: int) -> None:
        for number in range(rounds):
            for actor in actors:
                system.tell(actor, number)

    def ask(rounds: int) -> None:
        for _ in range(rounds):
            system.ask(one, "ask", 10)

    row = {
        "bytes_idle": each,
        "tell": rate(20_000, lambda: tell([one], 20_000)),
        "ask": rate(5_000, lambda: ask(5_000)),
        "fan_out": rate(20_000, lambda: tell(many, 20)),
    }
    expect(system.ask(one, "ask", 10), 40_000 + 10_000 + 1)
    system.shutdown()
    return row


def xoscar() -> Row:
    """A pool within one process."""
    import xoscar as mo

    class Counting(mo.Actor):
        def __init__(self) -> None:
            super().__init__()
            self.seen = 0

        def tick(self, number: int) -> int:
            self.seen += 1
            return self.seen

    async def play() -> Row:
        pool = await mo.create_actor_pool("127.0.0.1:0", n_process=0)
        address = pool.external_address
        async with pool:
            one = await mo.create_actor(Counting, address=address)
            before = resident()
            idle = [await mo.create_actor(Counting, address=address) for _ in range(5_000)]
            each = (resident() - before) / len(idle)
            many = [await mo.create_actor(Counting, address=address) for _ in range(MANY)]

            async def tell(actors: list[Any], rounds: int) -> None:
                for number in range(rounds):
                    for actor in actors:
                        await actor.tick.tell(number)
                await asyncio.gather(*(actor.tick(0) for actor in actors))

            async def ask(rounds: int) -> None:
                for _ in range(rounds):
                    await asyncio.gather(*(one.tick(number) for number in range(ABREAST)))

            row = {
                "bytes_idle": each,
                "tell": await async_rate(5_000, lambda: tell([one], 5_000)),
                "ask": await async_rate(5_000, lambda: ask(50)),
                "fan_out": await async_rate(5_000, lambda: tell(many, 5)),
            }
            expect(await one.tick(0), 10_000 + 2 + 10_000 + 1)
        return row

    return asyncio.run(play())


def tapio() -> Row:
    """A task per actor, messages validated as it does by default."""
    import tapio as t

    class Tick(t.Message):
        number: int

    class Ask(t.Message):
        reply_to: t.ActorRef[Tick]

    handled = [0]

    async def on_message(message: Any) -> Any:
        handled[0] += 1
        if isinstance(message, Ask):
            message.reply_to.tell(Tick(number=1))
        return t.Behaviors.same()

    on_message.__annotations__["message"] = Tick | Ask  # it reads them to know what may be sent

    async def play() -> Row:
        async with t.ActorSystem("bench") as system:

            def spawn(name: str) -> Any:
                return system.spawn(t.Behaviors.receive_message(on_message), name=name)

            one = spawn("one")
            await asyncio.sleep(0)
            before = resident()
            idle = [spawn(f"idle-{number}") for number in range(5_000)]
            await asyncio.sleep(0)
            each = (resident() - before) / len(idle)
            many = [spawn(f"many-{number}") for number in range(MANY)]
            message = Tick(number=1)

            async def tell(actors: list[Any], rounds: int) -> None:
                wanted = handled[0] + len(actors) * rounds
                for number in range(rounds):
                    for actor in actors:
                        actor.tell(message)
                    if number % MANY == MANY - 1 or len(actors) > 1:
                        await asyncio.sleep(0)
                while handled[0] < wanted:
                    await asyncio.sleep(0)

            async def ask(rounds: int) -> None:
                for _ in range(rounds):
                    await asyncio.gather(*(one.ask(lambda to: Ask(reply_to=to), expect=Tick) for _ in range(ABREAST)))

            return {
                "bytes_idle": each,
                "tell": await async_rate(20_000, lambda: tell([one], 20_000)),
                "ask": await async_rate(3_000, lambda: ask(30)),
                "fan_out": await async_rate(20_000, lambda: tell(many, 20)),
            }

    return asyncio.run(play())


SUBJECTS: dict[str, Callable[[], Row]] = {
    "floor": floor,
    "ours": ours,
    "asyncio_queue": asyncio_queue,
    "pykka": pykka,
    "thespian": thespian,
    "xoscar": xoscar,
    "tapio": tapio,
}
PEERS = {"pykka": "pykka", "thespian": "thespian", "xoscar": "xoscar", "tapio": "tapio-py"}  # module: distribution


def missing(name: str) -> bool:
    return name in PEERS and importlib.util.find_spec(name) is None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(SUBJECTS[sys.argv[1]]()) + "\n")
