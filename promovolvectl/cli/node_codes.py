"""Codes that nodes put into faults, logs and refusals, with what they mean and what helps."""

from __future__ import annotations

from typing import Final

from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import ErrorCode

_FAULT: Final = int(ExitStatus.UNHEALTHY)
_FAILED: Final = int(ExitStatus.FAILED)
_CONFIG: Final = int(ExitStatus.UNUSABLE_CONFIG)
_MISMATCH: Final = int(ExitStatus.MISMATCH)
_LOCAL: Final = int(ExitStatus.LOCAL_FILE)
_OURS: Final = "This is a mistake of ours: the log of the node holds the place."
_ROOM: Final = "Free room on that disk, or give the node's data folder a larger one."

_ENTRIES: Final[tuple[tuple[str, int, str, str], ...]] = (
    ("E-BENCH", _FAILED, "A benchmark of the source's checkout failed.",
     "'./scripts/bench SUBJECT' in that checkout says more; it needs what './scripts/environment bench' installs."),
    ("E-NOT-SERVED", int(ExitStatus.REFUSED), "Nothing is served to that page, whatever stands in the pools.",
     "A suspended site serves again after 'site resume'; a page must be on the host of its site."),
    ("E-NOT-STAGED", int(ExitStatus.REFUSED), "An order that takes something away came without a plan.",
     "The command of that name stages it and shows the plan first; so does any program that sends StageOrder."),
    ("E-NODE-GONE", int(ExitStatus.NOT_FOUND), "A node of that name was a member and is none now.",
     "'promovolvectl node start NAME' on its host starts it again; 'cluster decisions' tells who was removed and why."),
    ("E-STOPPED", int(ExitStatus.CONFLICT),
     "A node's process here is stopped by a signal (SIGSTOP, or a debugger): it lives, and neither serves nor ends.",
     "'kill -CONT PID' lets it go on; 'promovolvectl doctor --only processes' names such processes."),
    # what health and check find
    ("E-NODE-NOT-READY", _FAULT, "A node is a member but does not serve yet; the reasons stand beside it.",
     "'promovolvectl node show NAME' tells what it waits for; 'node wait NAME --for ready' waits."),
    ("E-SHARDS-UNALLOCATED", _FAULT, "Shards have no live owner, so their sites and campaigns can't be changed now.",
     "'promovolvectl shard list --filter state=unallocated' names them and why; start an entity node."),
    ("E-NO-NODE-OF-ROLE", _FAULT, "All nodes of a role are gone, and with them what only they do: 'api' serves ads, "
     "'entity' keeps sites and campaigns, 'singleton' coordinates the shards, 'crawler' classifies pages.",
     "'promovolvectl node start NAME' for one of those that the reason names."),
    ("E-NO-MAJORITY", _FAULT, "Fewer entity nodes are in reach than a majority takes.",
     "Bring nodes back, or 'promovolvectl node remove NAME' for one that is gone for good."),
    ("E-NOT-CONVERGED", _FAULT, "Members do not hold the same view of the cluster yet.",
     "It ends by itself within seconds of the last change: 'promovolvectl cluster wait --for converged'."),
    ("E-BIDDER-SILENT", _FAULT, "One stripe of a category's bidders has not answered for half a minute: its sites keep "
     "what they have, and hear nothing new of the campaigns that bid on the category.",
     "'promovolvectl entity restart' the bidder that is named, or look at the node that has its shard."),
    ("E-REPLICAS-DIFFER", _FAULT, "Replicas of the ServeIndex differ.",
     "It ends by itself as changes arrive: 'promovolvectl cluster wait --for replicas=agree'."),
    ("E-NOT-JOINED", _FAULT, "A node was refused by the members that it asked; the reason stands beside it.",
     "The reason names the setting or key that does not fit; correct it and start the node again."),
    # the HTTP API
    ("E-HTTP-ACCESS", _FAULT, "The file of bearer tokens can't be read any more; those read before still count.",
     "Mend the file that the setting wire.http_access_file names; it is read again within a second of its change."),
    ("E-WEBHOOK", _FAULT, "A receiver of webhooks does not take what it is sent; it is tried again and again.",
     "The reason stands beside it: look at the receiver, or take it out of the file of receivers."),
    # who judges pages
    ("E-CLASSIFIER-SERVICE", _FAULT, "The service that should judge pages does not; 'local' judges them, marked so.",
     "The reason stands beside it: mend the key or the address, or wait; 'node show NAME' counts what failed."),
    ("E-CLASSIFIER-KEY", _CONFIG, "The key of the service that should judge pages is missing or can't be used.",
     "One line with the key in the file that classifier.api_key_file names, readable by its owner only."),
    # the replica
    ("E-REPLICA-DEGRADED", _FAULT, "A replica can't be written to disk and is kept in memory until it can.",
     _ROOM),
    ("E-REPLICA-DISK", _LOCAL, "The replica's file can't be opened.",
     "Check that disk's room and health; a replica that is lost is fetched from the others."),
    ("E-REPLICA-FULL", _LOCAL, "The replica has reached the size that it may have.",
     "Raise the replica's limit in the node's settings and start it again."),
    ("E-REPLICA-IN-USE", _LOCAL, "Another process has the replica's file open.",
     "Stop the process that the message names: two nodes can't share a folder."),
    ("E-FENCED", _FAILED, "An entry was written under a newer epoch: who tried has lost the shard.",
     "Nothing needs to be done; the shard's present owner writes it."),
    (
        "E-SILENT",
        int(ExitStatus.PARTIAL),
        "The node that has what was asked for does not answer. Nothing was changed: the question only reads.",
        "'promovolvectl cluster health' tells of the node; what it has moves when it is removed from the cluster.",
    ),
    (
        "E-INDEX-INCOMPLETE",
        int(ExitStatus.PARTIAL),
        "A node did not give its part of the ServeIndex, so what was asked for is not whole.",
        "Ask again when 'promovolvectl cluster health' is content.",
    ),
    (
        "E-ENTRY-DAMAGED",
        _FAILED,
        "An entry of the ServeIndex can't be read by this release, or is damaged.",
        "'promovolvectl replay start --site SITE' makes it anew.",
    ),
    # the store
    ("E-STORE-BUSY", _FAILED, "The store's file was changed under a batch again and again.",
     "See that no other program opens the store, then try again."),
    ("E-STORE-CLOSED", _FAILED, "The node is about to stop and writes nothing new.",
     "Ask again: another node answers."),
    ("E-STORE-DENIED", _CONFIG, "The database does not let the node in, or not to its tables.",
     "Check user, password and rights of the file that store.dsn_file names."),
    ("E-STORE-ENCODING", _CONFIG, "The database's encoding can't hold every name.",
     "Create the database with ENCODING 'UTF8'."),
    ("E-STORE-PATH", _LOCAL, "A path of the store can't be used.",
     "The message names it: check its owner, its mode and the disk."),
    ("E-DSN-FILE", _CONFIG, "The file that names the database can't be used.",
     "It holds one line like postgresql://user:password@host:5432/database, readable by its owner only."),
    ("E-NEWER-FORMAT", _MISMATCH, "The store was written by a later release.",
     "Run the release that wrote it, or a later one."),
    ("E-NO-BOOT-ID", _LOCAL, "The machine does not tell which boot this is, so a crash can't be told from a restart.",
     "See that /proc is mounted where the node runs."),
    ("E-RECORD-TOO-LARGE", _FAILED, "An entity's state is larger than a record may be.",
     "Give it fewer pages, slots or creatives; the message names the entity."),
    ("E-BAD-KEY", _FAILED, "A record's key is not one that the store takes.", _OURS),
    ("E-BAD-OFFSET", _FAILED, "A reader of the event log named a place that is not ahead of it.", _OURS),
    ("E-BAD-PLACEMENT", _FAILED, "A placement names a shard twice, or one that does not exist.", _OURS),
    ("E-WRONG-SHARD", _FAILED, "A write named another shard than its entity's.", _OURS),
    # addresses and links
    ("E-ADDRESS", _LOCAL, "An address of the node's settings can't be listened on.",
     "Name an address that this machine has."),
    ("E-BIND", _LOCAL, "An address of the node's settings can't be listened on.",
     "Name an address that this machine has."),
    ("E-PORT-IN-USE", _LOCAL, "Another process listens on a port that the node needs.",
     "Stop that process, or give the node another port."),
    ("E-ADMIN-BUSY", int(ExitStatus.UNREACHABLE), "A node takes no more requests at the moment.",
     "Ask again in a moment, or another node with --endpoint HOST:PORT."),
    ("E-ADMIN-CLOSED", int(ExitStatus.UNREACHABLE), "The connection was closed before the answer came.",
     "Look before you repeat a change: it may have happened."),
    ("E-ADMIN-UNREACHABLE", int(ExitStatus.UNREACHABLE), "Something listens there and did not answer in time: a node "
     "that is busy, or stands still, or what is no node of the profile's.",
     "'promovolvectl doctor' tells which of them it is; nothing needs to be started."),
    ("E-AUDIT", _FAILED, "The audit log takes no entry, or can't be read. What is not on record is not done.",
     "The log is in the state store: 'promovolvectl cluster health' says what ails it."),
    ("E-LAST-ADMIN", int(ExitStatus.REFUSED), "The key is the last administrator's: nobody could hand out keys then.",
     "Make another administrator first: 'promovolvectl auth key create NAME --role admin'."),
    ("E-TOO-LARGE", _FAILED, "The answer is larger than one message may be.",
     "Ask for less: --limit, --node, --type or --state, where the command has them."),
    ("E-DRILL", int(ExitStatus.CONFLICT), "What a drill proves does not hold, or could not be tried.",
     "Its text says what was found: 'promovolvectl cluster drill show NAME'; then 'promovolvectl cluster check'."),
    ("E-ZMQ-VERSION", _CONFIG, "libzmq is too old to be safe, or was built without encryption.",
     "Install the packages that the release names."),
)  # fmt: skip
NODE_CODES: Final = tuple(
    ErrorCode(code=code, exit=status, meaning=meaning, help=help_) for code, status, meaning, help_ in _ENTRIES
)
