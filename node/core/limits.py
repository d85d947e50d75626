"""Every bound in the system, with its unit at the end of its name and the reason beside it."""

# --- wire
frame_data_bytes_max = 1 << 20  # a frame is held whole in memory by both sides
frame_control_bytes_max = 64 << 10  # control frames must never delay a heartbeat
frame_items_max = 65_536  # cbor2 has no cap of its own; a 1 MiB frame could claim a million objects
frame_depth_max = 32  # deeper than any message of ours, shallow enough for any stack
frame_prescan_bytes_min = 16 << 10  # smaller frames can't hold enough items to hurt
lane_high_water_messages = 10_000  # per peer and lane; above it an ask fails with PeerBusy
handshake_ms_max = 3_000  # half-open connections are dropped after it
reconnect_ms_max = 2_000  # ceiling of ZeroMQ's reconnect backoff
ledger_incarnations_max = 4  # of one peer, counted apart; what older ones did is added up
conservation_ms = 3_000  # how often nodes tell each other what they have sent: some hundred bytes for each peer
conservation_fault_ms = 10_000  # a difference between sent and arrived that lasts so long is a fault, not a delay
sequence_gaps_max = 64  # of one lane, that frames of a lost connection may still fill; older ones stay lost
registry_types_max = 2_000  # names in a peer's greeting
greeting_retry_ms = 1_000  # a connection whose greeting is not answered asks again this often
connections_proven_max = 1_024  # remembered by address; above it those that have ended are looked for and forgotten
chunk_bytes = 256 << 10  # a piece of a document that is larger than a message; four fit one
chunked_bytes_max = 16 << 20  # announced by all documents that are on their way in, since each is held whole
chunked_open_max = 32
chunks_idle_ms_max = 30_000  # a document that nobody goes on with is forgotten
linger_ms = 200  # a stopping node gives its last frames this long
frame_batch_bytes = (16 << 10) - 1  # batches stay below frame_prescan_bytes_min: checked in C, tens of messages each
lane_queue_bytes_max = 32 << 20  # per peer and lane, beside the count: 10,000 large messages would be 10 GB
lane_frames_max = 64  # ZeroMQ's own high-water mark: few, so that what a lost connection takes with it is little
lane_retry_ms = 50  # a full or unconnected lane is tried again this often, should a wake-up be missed
link_unacknowledged_ms_max = 3_000  # bytes that a peer's kernel leaves unacknowledged for so long end a connection
link_idle_s_max = 2  # then the kernel probes, link_probes_max times each link_probe_s, and gives the connection up
link_probe_s = 1
link_probes_max = 3
link_timeout_ms = 3_000
handshakes_failed_max = 3  # in a row, then the other side is not what we take it for; a node that stops causes one
reconnect_ms_min = 250  # also the pace after a refused handshake, where ZeroMQ does not back off: 4 a second
receive_slice_ns = 2_000_000  # one lane's receiving in one turn, so that timers and the other lane are never starved
key_file_bytes_max = 4 << 10  # a key pair is 150 bytes; anything longer is not one
roster_entries_max = 10_000  # nodes and operators of one cluster
admin_request_bytes_max = 1 << 20  # one admin document in either direction
admin_frames_max = 256  # per client and direction; a client that doesn't read loses events, not the server its memory

# --- time
hlc_ahead_ms_max = 60_000  # a clock further ahead is refused, not adopted

# --- actors
mailbox_messages_max = 10_000  # never unbounded; overflow is counted
dispatcher_throughput_messages = 64  # messages of one cell in one turn, then the next cell
dispatcher_slice_ns = 2_000_000  # and no longer than this, so that sockets and timers are never starved
restart_backoff_ms_min = 1_000
restart_backoff_ms_max = 30_000
store_backoff_ms_max = 4_000  # whom the store failed is back so soon after it is, however long it was away
restart_window_ms = 60_000  # restarts are counted in this window …
restarts_max = 5  # … and this many of them quarantine the entity
deliveries_max = 5  # a message that fails an entity this often is a dead letter
dead_letters_kept = 1_000  # a ring; the counters go on
stopping_replies_ms_max = 2_000  # a stopping shard waits this long for kept replies; well below handoff_ms_max
residents_max = 200_000  # passivatable entities in a node's memory: 200 MB at 1 KB each; above it the least used go
protected_ratio = 0.8  # of them are safe from whatever was touched only once
correlated_use_ms = 1_000  # uses closer together than this are one use: what one request does is no popularity
evict_looks_max = 64  # entities looked at to make room for one; the search must not hold up a message
evict_retry_ms = 50  # when all of those were busy
actor_rows_max = 500  # entities, letters or turns in one node's answer about its actors
dead_letter_payload_chars_max = 16_000  # of one letter, shown when asked for
handler_stuck_ms = 1_000  # a handler that runs longer is named while it still runs
watchdog_ms = 250  # how often that is looked at
handler_slow_ms = 100  # a handler that takes longer delays everything on its node: counted by type and message
mailboxes_spare_max = 1_024  # empty ones kept for the next: together 0.6 MiB, and a burst makes no new ones
flight_turns_kept = 2_048  # the newest turns of a node, for whoever asks what it just did
flight_turns_kept_min = 64  # what is left of them when most entities were passivated
asks_open_max = 20_000  # per node; more means that something does not answer
executor_threads = {"db": 4, "llm": 1, "browser": 1, "disk": 1}  # blocking work by what it waits for; so named in pipe
executor_queue_max = 256  # per named executor; above it ExecutorSaturated at once

# --- replication
delta_batch_ms = 20
delta_batch_bytes = 64 << 10
delta_log_bytes_max = 16 << 20  # a peer further behind is brought up by anti-entropy
replica_commit_ms = 200
replica_commit_entries = 1_000
reconcile_batch_bytes = 256 << 10  # what one reconciliation message may carry
replica_map_bytes_max = 16 << 30  # address space reserved at the open, and what the file may grow to
replica_scrub_pause_ms = 1_000  # between two of its 8,192 leaves: a round in two and a half hours, whatever its size
replica_filling_percent = 80  # of the file's limit held by entries: time to raise it
replica_reader_commits_max = 300  # a read that is older than these commits, a minute of them, keeps the file growing
disk_slow_ms = 1_000  # a commit that takes longer names a fault
replica_room_bytes_min = 1 << 20  # a disk with less counts as full when a commit fails, and not as broken
replica_readers_max = 126  # reads of one replica at a time, checks by other processes included
replica_stale_rows_max = 1_000  # rows of an index that lead nowhere, remembered until the next commit takes them out
replica_quarantine_records_max = 1_000  # damaged records whose bytes are kept in the file for whoever looks into them
replica_damaged_kept_max = 10_000  # names of damaged entries; a replica with more is to be streamed anew
view_bytes_max = 256 << 10  # a ServeView larger than this is refused at its writer

# --- sharding
region_buffer_messages_max = 2_000  # per shard while its home is unknown or moving
region_buffer_ms_max = 10_000  # then the sender is told to retry
handoff_ms_max = 15_000  # a hand-off that takes longer is forced by epoch
remember_starts_per_s = 200  # a restart must not starve serving
moves_at_once_max = 20
moves_ratio_max = 0.1  # of all shards

# --- store
store_wait_ms_max = 1_000  # a writer that waits longer names a fault
store_batch_requests_max = 256  # one transaction's worth of group commit
record_bytes_max = 4 << 20  # one entity's durable state
store_name_bytes_max = 400  # LMDB's keys end at 511 bytes; a kind, a shard and separators go before an id
store_kind_bytes_max = 64  # a kind, or a consumer, stands before a name in a key: together they fit LMDB's 511 bytes
store_page_records_max = 5_000  # one page of a listing is held in memory whole
store_page_bytes_max = 16 << 20  # and so are its bodies
verify_problems_max = 1_000  # named by a check of a whole replica; the others are counted
verify_progress_entries = 20_000  # between two lines of progress: a few a second
verify_line_bytes_max = 4 << 20  # a report with all the problems it may name, long keys included
store_map_bytes = 64 << 20  # the first size of the memory map; address space, not disk
store_map_bytes_max = 64 << 30  # a state store that outgrows it belongs on another engine
store_deadline_ms = 5_000  # all of one batch at a server: connecting, waiting for locks, the commit; asks end before it
scrub_records = 100  # checked at once: a millisecond of the store's thread
scrub_pause_ms = 1_000  # between two of those: a million records in three hours
facts_poll_ms = 1_000  # how often a consumer that has caught up looks for more facts
facts_page = 500  # facts applied in one transaction
store_retry_ms = 1_000  # a node that can't start without its store asks again this often
store_lease_ms_max = 2_000  # a lease that takes longer to renew than this is as good as lost
store_idle_transaction_ms_max = 2_000  # how long a node that is stopped inside a transaction may block the others
store_batch_bytes_max = 16 << 20  # bodies in one transaction, which both sides hold in memory
store_readers_max = 510  # reader slots of one file: nodes of a host, their threads, and tools beside them
backup_frame_bytes = 1 << 20  # bodies under one checksum of an archive
backup_frame_rows_max = 5_000  # and rows, of which most have no body to speak of
backup_frame_bytes_max = 32 << 20  # what a reader of an archive takes into memory: a frame and one record of 4 MiB
backup_snapshot_s_max = 900  # the store keeps all it frees for as long as a snapshot is read
backup_say_s = 1.0  # between two lines of progress
restore_batch_rows = 5_000  # in one transaction of the new file
restore_jump = 1_000_000_000  # epochs, terms and starts given out since a backup: one a second for thirty years
store_look_s_max = 2.0  # a writer that waits longer for the file's lock is reported as blocked

# --- ads
site_id_chars_max = 253
slot_id_chars_max = 128
url_chars_max = 2_048
page_text_chars_max = 8_000
site_pages_max = 10_000
decisions_kept_per_site = 1_000
money_micros_max = 10**15  # one thousand million units: far above any budget, far below what 64 bits hold
view_candidates_max = 500  # one slot's pool; bounds a view, a decision and what explain keeps of it
view_auctions_max = 64  # auctions a view remembers for explain; the oldest without candidates go first
classification_categories_max = 5  # more says nothing about a page and widens every auction
auction_categories_max = 3  # the highest ranked ones; each costs a fan-out over all its ancestors
reservation_ms_max = 240_000  # beacon tokens live 3 minutes either way; after 4 no impression can arrive
reserve_request_age_ms_max = 10_000  # a request older than this is a late duplicate and reserves nothing
reservations_open_max = 20_000  # per campaign; above it the campaign says no instead of growing
token_skew_buckets_max = 3  # minutes that a signed url lives before and after the minute it was made in
html_bytes_max = 2 << 20  # a page is parsed in memory; the text kept of it is 8,000 characters
html_depth_max = 256  # real pages stay below 64; a parser's time grows with the square of the depth

# --- membership
members_max = 64  # living members: the whole gossip state must fit one control frame
member_names_max = 192  # names ever used, tombstones included: at 250 bytes each 48 KiB of that frame
observations_max = 1_024  # rows about members that were once seen failing
detector_samples_max = 200  # enough to know a peer's rhythm, few enough to follow a change
guests_max = 64  # nodes that are no members and are being told why
seeds_look_s = 5  # how often names are looked up and files read while a node has not joined
seeds_joined_look_s = 60  # and afterwards, for the next time it has lost everybody
resolve_s_max = 3  # a name server that does not answer is a reason to show, not to wait for
seed_file_bytes_max = 64 << 10  # a thousand lines
member_cause_chars_max = 120  # why a record ended: gossiped with it, so it is part of the 250 bytes above
leader_blocked_ms = 5_000  # a leader that can't act for so long says who keeps it from that
split_lease_minority_wait_ms = 2_000  # so that the larger side asks the store first
split_lease_answer_ms_max = 3_000  # no answer for so long is a no
split_lease_ttl_ms = 40_000  # outlives the time between the two sides' decisions, also in the default profile
decisions_kept_max = 1_000  # split-brain decisions in a node's own log, about 2 KiB each
decisions_reported_max = 100  # per node and answer: with 64 members about 6 KiB each, so they fit a frame
pings_max = 1_000  # of one question, to each node on each lane
ping_deadline_ms = 2_000  # all pings of one way together: a hung node costs this once
decision_age_days_max = 90  # older ones are dropped when the log is written next
rehearsed_cases_max = 2_500  # combinations of lost nodes judged by one request: any two of 64, any three of 25

# --- sharding: coordination
coordinator_lease_ms = 5_000  # how long nobody allocates after the coordinator died; 3 s in the fast profile
placement_digest_ms = 1_000  # a region that missed a change learns of it within this
first_placement_wait_ms = 10_000  # then the first placement goes ahead with the nodes that are there
handoff_resend_ms = 2_000  # a lost request to stop a shard costs this, not the whole time limit
rebalance_after_ms = 10_000  # an imbalance must last this long, so that a restart moves nothing twice
homes_wanted_ms = 250  # least time between two requests for the table by one region
region_hops_max = 2  # relays of one message between regions that disagree; then it waits for news
escrow_block_ratio = 0.02  # of a day's budget: what a crash may keep from being spent for four minutes
settled_minutes_kept = 8  # a beacon's token lives three minutes either way, so older ids can't come again
auction_round_pages_max = 64  # pages auctioned in one round, so that a large site shares its node
bidder_campaigns_max = 200  # campaigns one bidder offers; more than a publisher ever approves for one subject
pending_creatives_max = 500  # per site; a queue longer than this is not read by a publisher

# --- actors, continued
dispatcher_steps_max = 1_024  # cells and calls in one turn, also when the clock stands still as in the simulator
snapshot_events_max = 10_000  # things whose newest event a topic keeps for who missed it
bus_events_max = 1_000  # per subscriber; a slower one is told what it lost
remember_page_entities = 500  # refs held per shard while it is being remembered
remember_tick_ms = 50  # starts are paced in batches of this length
executors_close_ms_max = 5_000  # a stopping node waits this long for blocking work, then leaves it

# --- replicator
replica_key_bytes_max = 511  # LMDB's own bound on a key
replica_commit_entries_max = 10_000  # one transaction's worth when a failing disk has let changes pile up
replica_records_max = 2_000  # entries or versions in one message: four such messages stay below frame_items_max
replica_in_flight_bytes_max = 1 << 20  # deltas on their way to one peer; a slow peer waits, it doesn't queue up
replica_ranges_ahead_max = 64  # ranges of a peer's deltas remembered behind a gap; what is beyond comes again
replica_wants_max = 20_000  # keys known to be missing that wait to be fetched from one peer; later rounds find the rest
watch_changes_max = 1_000  # news of replicated keys that wait for a slow reader; older ones become a gap
replica_away_feeds_max = 64  # peers that can't be reached whose place in the log is remembered
replica_index_page_rows = 2_000  # read at once from an index: about a millisecond
replica_recount_leaves = 16  # of a map that damage was found in, counted anew per tick: a map in a quarter of a minute
replica_collect_entries = 500  # lapsed entries forgotten per tick
history_versions_max = 8  # of one key: what `serveindex history` shows
history_keys_max = 10_000  # keys whose versions are remembered: some 10 MiB when each of them changed eight times
tombstone_min_age_ms = 3_600_000  # far above any delay of a message: what still travels can't outlive a tombstone
removal_retry_ms = 200  # the first wait for a majority; doubled each time up to the next line
removal_retry_ms_max = 5_000  # a replica that returns is asked within this
removal_attempts_max = 5  # then the caller hears that it is pending: after 6 seconds
stream_bytes_per_s = 64 << 20  # an empty replica fills at this rate at most, so that its peers go on serving
roster_read_ms = 1_000  # until the roster is read again from a store that did not answer
roster_answer_ms_max = 2_000  # a coordinator that does not answer in this time is asked again
removals_asked_max = 10_000  # removals that peers are asked about at once: five messages to each
confirmations_waiting_max = 20_000  # removals of others that wait for this node's disk; more are refused
certificates_kept_max = 1_000  # of removals that every replica has; newest first
replica_hlc_reserve_ms = 1_000  # the durable clock mark runs ahead by this: what a crash loses is not reissued
index_looked_entries = 1_000  # entries that one look of an operator reads: a few milliseconds of the node's loop
index_page_rows = 1_000  # keys in one answer to an operator: 100 KB, so that the first page is there at once
index_page_bytes = 256 << 10  # values in one answer to an operator; one that is larger goes alone
index_page_leaves = 2_048  # leaves in one answer: their digests take 60 KB
index_diff_rows_max = 1_000  # differing keys that are named and mended at once; the rest is counted
index_largest_max = 1_000  # keys that 'largest' can name
index_load_entries_max = 200_000  # of one load, held whole between its plan and its commit
index_load_bytes_max = 256 << 20
index_loads_open_max = 4  # loads that are on their way in to one node
index_removals_max = 500  # pending removals, or tombstones, in one node's answer
removal_wait_ms_max = 15_000  # whoever asks for a removal hears after five attempts, of together six seconds, at last
index_problems_max = 200  # of one file, named in an answer to an operator: 100 KB with long keys; the rest is counted
index_look_again_ms = 300  # what still differs after so long did not merely arrive at different moments
requests_held_max = 1_000  # per site, while its ad server learns what it needs; more are refused
views_decoded_max = 50_000  # decoded views kept per node, so that serving decodes nothing twice
storeless_repeat_ms = 1_000  # a node that the store does not answer says so again this often
storeless_heard_ms_max = 3_000  # and is believed for so long
draining_heard_ms_max = 3_000  # a node that says it drains says so each second; silence ends it
engine_rest_tick_ms = 250  # the same where nothing waits: a twelfth of the shortest lease is soon enough to renew it
engine_rest_early_ms = 65  # a turn that comes so long before that tick takes it along: one wake instead of two
engine_tick_ms = 50  # how often machines without a wake of their own see time pass
events_kept = 500  # the newest events of a node, for whoever subscribes late
events_page = 300  # of them in one answer: each a few hundred bytes, and an answer fits a frame
log_lines_kept = 2_000  # of a node's log in its memory: 500 KiB at 250 bytes, and the last minutes of a bad night
log_line_chars_max = 2_000  # a traceback's end is what tells; longer lines are cut
log_page_bytes = 256 << 10  # of lines in one answer to another node
log_level_s_max = 86_400  # a level that was set for a time goes back by itself within a day
stuck_after_ms = 5_000  # what has not moved for so long is said to stand still, unless the operator says otherwise
slots_per_request_max = 64  # slots of one page view
slot_pixels_max = 10_000
http_body_bytes_max = 1 << 20  # a request's body is held in memory
sites_resolved_max = 10_000  # hosts of publishers whose site a node remembers
can_stop_lag_ms_max = 1_000  # an entry that a peer acknowledges no later than this is only on its way
remove_wait_ms_max = 5_000  # that the others have agreed to a removal takes two rounds of gossip where all are well
plans_kept_max = 64  # plans at the coordinator; older ones that were never committed must be made again
no_home_sooner_ms = 150  # than its deadline an ask without a home is refused: two ticks, and the way back
passage_ticks_max = 10  # of at most 100 ms: how long order is waited for when a former owner does not pass it on
receipts_unwritten_max = 1_000  # last lines of receipts that wait for the next write of the coordinator
ownerships_kept_max = 16  # per shard: some weeks of a cluster that is rolled now and then
handoff_typical_ms = 400  # what a plan expects of one hand-off until this coordinator has seen some
handoffs_timed = 64  # the newest hand-offs, whose median a plan's duration is expected by

# --- ads: a site's record
host_chars_max = 300  # a host name of 253 characters with a scheme and a port
site_slots_max = 256  # named by anybody who reports a page; more would be somebody's mistake or malice
coverage_keys_max = 2_000  # looked up in a node's replica for one question: some 10 ms of its loop
report_creatives_max = 20  # of a slot's offers, by name in an auction's report: as many as an operator reads
shelf_pages_max = 32  # of a site's pages in one record: some 10 KB, which is what a classification writes
site_page_bytes_max = 8 << 20  # of one site's pages, in memory and in each message that teaches them
approved_creatives_max = 2_000  # per site
rejected_creatives_max = 2_000  # per site
site_blocks_max = 500  # domains, and products, that a publisher blocks: longer lists are not kept by hand
pending_slots_max = 16  # slots named with a creative that waits; they only say where it won
refusals_told_apart_max = 1_000  # peers and reasons that a log line is kept apart for; the counters know all

# --- draining
drain_record_ms_max = 1_000  # a phase waits this long to be on record: rather unrecorded than not drained
drain_blockers_named_max = 8  # of what holds a phase up; the rest is counted in one line
operations_kept_ms = 30 * 86_400_000  # ended ones start with their shard too: a month is what people look back
replay_empty_slots_max = 200  # a replay names so many empty slots and counts the others by reason
replay_rate_max = 100_000  # pages a second that may be asked for; sites are slower
replays_running_max = 16  # at once: each asks its sites all the time
operations_listed_max = 200  # the newest ones; a list is for people
drains_cancelled_kept = 64  # names of a node's cancelled drains, so that a late order does not begin one again
roll_settle_ms_max = 300_000  # a rolling restart waits this long for a whole cluster, then stops
roll_return_ms_max = 120_000  # and so long for a node's next life
balance_held_ms_max = 60_000  # nobody keeps the load uneven for longer without asking again
freeze_ms_max = 120_000  # a freeze whose stop never comes must not leave shards without a coordinator
drain_report_ms = 1_000  # a drain whose phase lasts says this often how it stands

# --- the edge
http_limit_min = 32  # requests let in at once, however slow they are: fewer would starve a node that merely waits
http_limit_max = 2_000  # and however quick: more would only be a queue in another place
http_limit_first = 200  # before anything is known
http_head_bytes_max = 32 << 10  # a request's line and headers; browsers send 2 KiB
http_head_ms_max = 10_000  # from the connection, or a request's first byte, to the end of its headers
http_body_ms_max = 10_000  # and to the end of its body: who sends slower holds memory for nothing
http_connections_max = 4_096  # and never more than half of the files that the process may open
