"""A role that no node in reach has any more is a reason against health, which names who had it."""

from __future__ import annotations

import msgspec
import pytest
from test_admin_views import cluster, member, report
from test_admin_views import status as status_of

from node.admin import views
from node.admin.absences import absences
from node.admin.missing_roles import missing_roles
from node.admin.protocol.cluster import ClusterStatus
from node.core.ids import ROLES
from node.gossip.member import Member, Status

ALL = ("api", "entity", "singleton", "crawler")


def seen(*members: Member, away: tuple[str, ...] = (), gone: tuple[Member, ...] = ()) -> ClusterStatus:
    """The cluster as a node sees it: `away` can not be reached, `gone` are members no more."""
    reports = {each.node: report(each.node) for each in members if each.node not in away}
    names = [each.node for each in (*members, *gone)]
    records = {each.node: each for each in (*members, *gone)}
    absent = absences(names, [each.node for each in members], records, {})
    found = status_of(cluster(*members, unreachable=away), reports=reports)
    return msgspec.structs.replace(found, absent=absent)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("how", ["away", "removed", "left"])
def test_the_last_node_of_a_role_is_missed_however_it_went(role: str, how: str) -> None:
    others = tuple(each for each in ALL if each != role)
    n1, n2 = member("n1", roles=others), member("n2", roles=(role,))
    if how == "away":
        found = seen(n1, n2, away=("n2",))
    else:
        cause = "left" if how == "left" else ""
        found = seen(n1, gone=(member("n2", roles=(role,), status=Status.REMOVED, cause=cause),))
    (reason,) = missing_roles(found)
    assert reason.code == "E-NO-NODE-OF-ROLE"
    assert f"the role {role} there was n2; 'promovolvectl node start n2' brings one back" in reason.text
    health = views.health(found)
    assert (health.state, reason in health.reasons) == ("unhealthy", True)


def test_another_node_of_the_role_is_enough_and_a_role_that_never_was_is_not_missed() -> None:
    n1, n2 = member("n1", roles=ALL), member("n2", roles=ALL)
    assert list(missing_roles(seen(n1, n2, away=("n2",)))) == []
    assert list(missing_roles(seen(member("n1", roles=("entity",))))) == []


def test_ads_are_what_is_lost_with_the_last_api_node() -> None:
    found = seen(member("n1", roles=ALL[1:]), gone=(member("n2", roles=("api",), status=Status.REMOVED),))
    (reason,) = missing_roles(found)
    assert reason.text.startswith("no node serves ads: ")
