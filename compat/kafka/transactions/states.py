"""
Which state of a transaction may follow which, and what is answered in which.

From the state on the left, a transaction goes on to those on the right::

    Empty           Empty  Ongoing  PrepareAbort(2)                  Dead
    Ongoing         Ongoing  PrepareCommit  PrepareAbort  PrepareEpochFence
    PrepareCommit   CompleteCommit
    PrepareAbort    CompleteAbort
    CompleteCommit  Empty  Ongoing  PrepareAbort(2)                  Dead
    CompleteAbort   Empty  Ongoing  PrepareAbort(2)                  Dead

(2) only with transactions of version 2, where a producer that is not sure ends one that may never
have begun. PrepareEpochFence is never written: in one step it becomes PrepareAbort, with an epoch
that shuts the old producer out. Dead is not written either: a tombstone is.

What a producer with the right id and epoch is told; "=" stands for a transition to that state::

    state           InitProducerId  AddPartitions   commit          abort
    Empty           = Empty         = Ongoing       48              48; v2 = PrepareAbort
    Ongoing         abort, then 51  = Ongoing       = PrepareCommit = PrepareAbort
    PrepareCommit   51              51              51              51
    PrepareAbort    51              51              51              51
    CompleteCommit  = Empty         = Ongoing       NONE; v2 48     48; v2 = PrepareAbort
    CompleteAbort   = Empty         = Ongoing       48              NONE; v2 = PrepareAbort

With version 2 every end raises the epoch, so a producer whose epoch is one too low asks again for
what it was not told: the same end is NONE in CompleteCommit and CompleteAbort, the other one is 48.
Prepared means: decided and written; markers are being written, and the next state is pending.
Everyone else is told 49 (another producer id, or none known) or 90 (another epoch).

Source: ``TransactionState``, ``TransactionCoordinator``.
"""

from __future__ import annotations

from collections.abc import Mapping

from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus

_EMPTY, _ONGOING = TransactionStatus.EMPTY, TransactionStatus.ONGOING
_COMMITTED, _ABORTED = TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT

#: states in which no transaction is open; an id that stays in one for long is forgotten
IDLE = frozenset({_EMPTY, _COMMITTED, _ABORTED})
#: decided, and not yet marked everywhere
PREPARED = frozenset({TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT})

#: for each state those from which it can be reached
PREVIOUS_STATES: Mapping[TransactionStatus, frozenset[TransactionStatus]] = {
    _EMPTY: IDLE,
    _ONGOING: IDLE | {_ONGOING},
    TransactionStatus.PREPARE_COMMIT: frozenset({_ONGOING}),
    TransactionStatus.PREPARE_ABORT: IDLE | {_ONGOING, TransactionStatus.PREPARE_EPOCH_FENCE},
    _COMMITTED: frozenset({TransactionStatus.PREPARE_COMMIT}),
    _ABORTED: frozenset({TransactionStatus.PREPARE_ABORT}),
    TransactionStatus.DEAD: IDLE,
    TransactionStatus.PREPARE_EPOCH_FENCE: frozenset({_ONGOING}),
}
