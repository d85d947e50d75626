"""The client against real sockets: dead, silent, strange and hostile endpoints."""

from __future__ import annotations

import asyncio
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_server import META, FakeNode
from samples import SAMPLES, status

from node.admin import protocol as p
from node.core.errors import BadInput
from node.wire.codec import dumps
from node.wire.keys import write_key_pair
from node.wire.zmq_sockets import new_key_pair
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.connect import CONNECT_MS
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.link import open_link
from promovolvectl.client.profiles import Endpoint, Profile

KEY = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"


def ask(profile: Profile, params: msgspec.Struct, timeout_ms: int = 5_000, **client: Any) -> Any:
    async def once() -> Any:
        admin = AdminClient(profile, open_link, **client)
        try:
            return await admin.call(params, timeout_ms)
        finally:
            admin.close()

    return asyncio.run(once())


def refused(profile: Profile, params: msgspec.Struct, timeout_ms: int = 5_000) -> CommandFailed:
    with pytest.raises(CommandFailed) as caught:
        ask(profile, params, timeout_ms)
    return caught.value


def dead() -> Endpoint:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return Endpoint(node="dead", admin=f"127.0.0.1:{free.getsockname()[1]}", key=KEY)


@contextmanager
def mute() -> Iterator[Endpoint]:
    """A port that takes connections and says nothing, like a stopped process."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield Endpoint(node="mute", admin=f"127.0.0.1:{listener.getsockname()[1]}", key=KEY)


STATUS = {p.GetClusterStatus: lambda _: status()}


def test_a_call_brings_the_reply_its_meta_and_the_deadline(tmp_path: Path) -> None:
    with FakeNode(STATUS) as node:
        reply, meta = ask(node.profile(tmp_path), p.GetClusterStatus(), 1_500)
    assert reply == status()
    assert meta == META
    assert 0 < node.timeouts_ms[0] <= 1_500


def test_dead_and_mute_endpoints_cost_a_short_deadline_each_then_the_next_is_asked(tmp_path: Path) -> None:
    with FakeNode(STATUS) as node, mute() as silent:
        started = time.monotonic()
        reply, _ = ask(node.profile(tmp_path, before=(dead(), silent)), p.GetClusterStatus())
        assert time.monotonic() - started < 20 * CONNECT_MS / 1000
    assert isinstance(reply, p.ClusterStatus)


def test_when_all_are_dead_each_is_named_with_the_reason(tmp_path: Path) -> None:
    with FakeNode(STATUS) as node, mute() as silent:
        gone = dead()
        profile = msgspec.structs.replace(node.profile(tmp_path), endpoints=(gone, silent))
        failed = refused(profile, p.GetClusterStatus())
    assert failed.status is ExitStatus.UNREACHABLE
    assert f"{gone.admin} (dead): connection refused" in failed.message
    assert f"{silent.admin} (mute): listens, but did not complete a handshake" in failed.message
    assert (failed.code, failed.hint, failed.nobody_there) == (
        "E-ADMIN-UNREACHABLE",
        "promovolvectl doctor -p local",
        False,
    )


def test_where_nothing_listens_the_cluster_is_to_be_started(tmp_path: Path) -> None:
    with FakeNode(STATUS) as node:
        own = node.profile(tmp_path, data=str(tmp_path))
        profile = msgspec.structs.replace(own, endpoints=(dead(), dead()))
    failed = refused(profile, p.GetClusterStatus())
    assert (failed.code, failed.hint, failed.nobody_there) == ("E-UNREACHABLE", "promovolvectl up -p local", True)


def test_a_node_that_did_not_answer_in_time_is_not_to_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("promovolvectl.client.calls.ATTEMPT_MS", 100)
    with FakeNode({p.GetClusterStatus: lambda _: None}) as deaf:
        profile = deaf.profile(tmp_path)
        gone = msgspec.structs.replace(profile, endpoints=(deaf.endpoint("deaf"), dead()))
        failed = refused(gone, p.GetClusterStatus())
    assert "(deaf): took the request and did not answer" in failed.message
    assert (failed.status, failed.hint) == (ExitStatus.UNREACHABLE, "promovolvectl doctor -p local")


def test_a_read_that_is_not_answered_goes_to_the_next_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("promovolvectl.client.calls.ATTEMPT_MS", 100)
    with FakeNode({p.GetClusterStatus: lambda _: None}) as deaf, FakeNode(STATUS) as node:
        profile = deaf.profile(tmp_path)
        second = msgspec.structs.replace(profile, endpoints=(deaf.endpoint("deaf"), node.endpoint()))
        node.knows(deaf.operator_keys.public)
        reply, _ = ask(second, p.GetClusterStatus())
    assert isinstance(reply, p.ClusterStatus)
    assert len(deaf.seen) == len(node.seen) == 1


def both(deaf: FakeNode, node: FakeNode, folder: Path) -> Profile:
    """A profile of two nodes of one cluster."""
    node.knows(deaf.operator_keys.public)
    return msgspec.structs.replace(deaf.profile(folder), endpoints=(deaf.endpoint("deaf"), node.endpoint()))


def refusing(code: str, exit_status: int) -> dict[type, Any]:
    def refuse(_: Any) -> Any:
        raise p.AdminRefusal(exit_status, code, f"no: {code}")

    return {p.CommitPlan: refuse}


def test_a_change_that_can_not_be_put_on_record_is_asked_of_the_next_node(tmp_path: Path) -> None:
    with FakeNode(refusing("E-AUDIT", 15)) as deaf, FakeNode({p.CommitPlan: lambda _: SAMPLES["Operation"]}) as node:
        reply, _ = ask(both(deaf, node, tmp_path), p.CommitPlan(id="p-1"))
        assert isinstance(reply, p.Operation)
        assert deaf.seen == node.seen == [p.CommitPlan(id="p-1")]


@pytest.mark.parametrize(
    ("second", "exit_status", "code"),
    [("E-AUDIT", 15, "E-AUDIT"), ("E-NOT-FOUND", 3, "E-AUDIT"), ("E-REFUSED", 5, "E-REFUSED")],
)
def test_when_no_node_makes_it_the_reason_is_told_that_counts(
    second: str, exit_status: int, code: str, tmp_path: Path
) -> None:
    with FakeNode(refusing("E-AUDIT", 15)) as deaf, FakeNode(refusing(second, exit_status)) as node:
        assert refused(both(deaf, node, tmp_path), p.CommitPlan(id="p-1")).code == code
        assert len(deaf.seen) == len(node.seen) == 1


def test_a_change_that_was_refused_for_another_reason_is_asked_of_nobody_else(tmp_path: Path) -> None:
    with FakeNode(refusing("E-STORE", 15)) as deaf, FakeNode({}) as node:
        assert refused(both(deaf, node, tmp_path), p.CommitPlan(id="p-1")).code == "E-STORE"
        assert node.seen == []


def test_a_change_that_is_not_answered_is_never_repeated_and_says_it_may_have_happened(tmp_path: Path) -> None:
    with FakeNode({p.CommitPlan: lambda _: None}) as node:
        profile = msgspec.structs.replace(
            node.profile(tmp_path), endpoints=(node.endpoint(), node.endpoint("same-again"))
        )
        failed = refused(profile, p.CommitPlan(id="p-1"), 200)
    assert failed.status is ExitStatus.TIMED_OUT
    assert "may have been done" in failed.message
    assert len(node.seen) == 1


def test_another_cluster_than_the_profile_is_bound_to_is_refused_naming_both(tmp_path: Path) -> None:
    with FakeNode(STATUS) as node:
        failed = refused(node.profile(tmp_path, cluster_id="c-other"), p.GetClusterStatus())
    assert failed.status is ExitStatus.MISMATCH
    assert "c-other" in failed.message
    assert "c-0001" in failed.message


def test_a_change_never_reaches_another_cluster(tmp_path: Path) -> None:
    with FakeNode({p.CommitPlan: lambda _: SAMPLES["Operation"]}) as node:
        failed = refused(node.profile(tmp_path, cluster_id="c-other"), p.CommitPlan(id="p-1"))
        assert not node.seen
    assert failed.status is ExitStatus.MISMATCH


def test_the_first_contact_binds_once(tmp_path: Path) -> None:
    bound: list[p.Meta] = []
    with FakeNode(STATUS) as node:
        ask(node.profile(tmp_path), p.GetClusterStatus(), bind=bound.append)
        ask(node.profile(tmp_path, cluster_id="c-0001"), p.GetClusterStatus(), bind=bound.append)
    assert bound == [META]


def test_an_unknown_key_and_a_wrong_server_key_have_their_own_status(tmp_path: Path) -> None:
    with FakeNode(STATUS) as node, FakeNode(STATUS) as stranger:
        not_known = msgspec.structs.replace(node.profile(tmp_path), endpoints=(stranger.endpoint(),))
        failed = refused(not_known, p.GetClusterStatus())
        assert failed.status is ExitStatus.NOT_ALLOWED, failed.message
        keyless = msgspec.structs.replace(not_known, endpoints=(Endpoint(admin=stranger.address),))
        assert refused(keyless, p.GetClusterStatus()).status is ExitStatus.UNUSABLE_CONFIG


@pytest.mark.parametrize(
    "reply",
    [
        b"\xff\xff",
        dumps("text"),
        dumps([1, {}]),
        dumps([1, {}, "admin.cluster_status", 1, {}]),
        dumps([1, msgspec.to_builtins(META), "admin.cluster_status", 1, {"converged": "yes"}]),
        dumps([1, msgspec.to_builtins(META), "admin.of_the_future", 1, {}]),
        dumps([1, msgspec.to_builtins(META), "admin.done", 1, {"changed": True}]),
    ],
)
def test_a_reply_that_breaks_the_protocol_ends_the_call_at_once(tmp_path: Path, reply: bytes) -> None:
    with FakeNode({p.GetClusterStatus: lambda _: reply}) as node:
        failed = refused(node.profile(tmp_path), p.GetClusterStatus())
    assert failed.status is ExitStatus.MISMATCH
    assert failed.code == "E-PROTOCOL"


def test_a_reply_of_a_newer_release_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    body = {**msgspec.to_builtins(SAMPLES["ShardPlace"]), "of_the_future": 1}
    reply = dumps([1, {**msgspec.to_builtins(META), "new": 2}, "admin.shard_place", 2, body])
    with FakeNode({p.GetShardOf: lambda _: reply}) as node:
        found, _ = ask(node.profile(tmp_path), p.GetShardOf(kind="site", id="x"))
    assert found == SAMPLES["ShardPlace"]


def test_a_refusal_keeps_code_status_message_and_hint(tmp_path: Path) -> None:
    def refuse(_: object) -> None:
        raise p.AdminRefusal(5, "E-LAST-NODE", "it is the last", hint="add one", about="node/node-1")

    with FakeNode({p.StageDrain: refuse}) as node:
        failed = refused(node.profile(tmp_path), p.StageDrain(node="node-1"))
    assert (failed.status, failed.code, failed.message, failed.hint, failed.about) == (
        ExitStatus.REFUSED, "E-LAST-NODE", "it is the last", "add one", "node/node-1",
    )  # fmt: skip


def test_many_calls_share_one_connection_and_answers_find_their_call(tmp_path: Path) -> None:
    def place(request: p.GetShardOf) -> p.ShardPlace:
        return p.ShardPlace(shard=int(request.id), node=None, epoch=0)

    async def many(profile: Profile) -> list[int]:
        client = AdminClient(profile, open_link)
        try:
            found = await asyncio.gather(
                *(client.ask(p.GetShardOf(kind="site", id=str(number)), p.ShardPlace) for number in range(50))
            )
        finally:
            client.close()
        return [reply.shard for reply, _ in found]

    with FakeNode({p.GetShardOf: place}) as node:
        assert asyncio.run(many(node.profile(tmp_path))) == list(range(50))


def test_a_subscription_yields_pushes_until_the_node_is_gone(tmp_path: Path) -> None:
    event = p.AdminEvent(at="x", topic="node.up", object="node/node-1", text="up")
    push = p.StatusPush(status=status(), meta=META)
    node = FakeNode({p.Subscribe: lambda _: [push, p.Subscribed(), event]})

    async def listen(profile: Profile) -> tuple[list[msgspec.Struct], CommandFailed]:
        client = AdminClient(profile, open_link)
        found: list[msgspec.Struct] = []
        try:
            async for item in client.subscribe():
                found.append(item)
                if len(found) == 2:
                    node.stop()
        except CommandFailed as failed:
            return found, failed
        finally:
            client.close()
        raise AssertionError("the stream ended without an error")

    with node:
        found, failed = asyncio.run(asyncio.wait_for(listen(node.profile(tmp_path)), 20))
    assert found == [push, event]
    assert failed.status is ExitStatus.UNREACHABLE
    assert failed.code == "E-LOST"


def test_a_key_that_is_not_taken_is_denied_and_one_that_is_not_there_is_handed_out(tmp_path: Path) -> None:
    with FakeNode({}) as node:
        profile = node.profile(tmp_path)
        write_key_pair(tmp_path / "other.key", new_key_pair())
        failed = refused(msgspec.structs.replace(profile, key_file=str(tmp_path / "other.key")), p.GetNodes())
        assert (failed.status, failed.code) == (ExitStatus.NOT_ALLOWED, "E-ADMIN-DENIED")
        assert failed.message.startswith("this key is not accepted: it was revoked, has expired,")
        missing = msgspec.structs.replace(profile, key_file=str(tmp_path / "none.key"))
        handed, made = "promovolvectl auth key create NAME", f"mv {tmp_path}/roster.toml {tmp_path}/roster.toml.old && "
        own = str(tmp_path / "keys" / "operator.key")
        for data, file, hint in (
            ("", own, handed),
            ("/srv/x", own, handed),
            (str(tmp_path), missing.key_file, handed),
            (str(tmp_path), own, made),
        ):
            missing = msgspec.structs.replace(missing, data=data, key_file=file)
            failed = refused(missing, p.GetNodes())
            assert (failed.status, hint in failed.hint) == (ExitStatus.UNUSABLE_CONFIG, True)
            assert failed.message == f"key file {missing.key_file} can't be read: No such file or directory"


def test_who_was_handed_a_key_is_not_told_to_found_a_cluster_where_none_answers(tmp_path: Path) -> None:
    with FakeNode({}) as node:
        profile = msgspec.structs.replace(node.profile(tmp_path), name="shop")
    for data, hint in (("", "promovolvectl doctor -p shop"), ("/srv/shop", "promovolvectl up -p shop")):
        failed = refused(msgspec.structs.replace(profile, data=data), p.GetNodes())
        assert (failed.status, failed.hint) == (ExitStatus.UNREACHABLE, hint)


def test_a_key_file_that_others_can_read_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with FakeNode(STATUS) as node:
        profile = node.profile(tmp_path)
        Path(profile.key_file).chmod(0o644)
        failed = refused(profile, p.GetClusterStatus())
        assert not node.seen
    assert failed.status is ExitStatus.UNUSABLE_CONFIG
    assert failed.hint.startswith("chmod 600 ")
    assert stat.S_IMODE(Path(profile.key_file).stat().st_mode) == 0o644


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises((CommandFailed, BadInput)):
        ask(Profile(name="x", endpoints=(Endpoint(admin="nowhere", key=KEY),)), p.GetClusterStatus())
