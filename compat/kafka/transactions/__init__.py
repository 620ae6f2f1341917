"""
Transactions: what a producer writes to several partitions becomes visible together, or never.

A sans-IO state machine.
:class:`~logstore.compat.kafka.transactions.coordinator.TransactionCoordinator` is the door; it
knows all transactional ids, each with its
:class:`~logstore.compat.kafka.transactions.transaction.Transaction`. What may follow what, and what
every request is answered in every state, stands in
:mod:`~logstore.compat.kafka.transactions.states`. Time comes from
:class:`~logstore.compat.waiting.Timers`; what must survive a restart goes through the port
:class:`~logstore.compat.kafka.transactions.transactions_log.TransactionsLog`, markers through
:class:`~logstore.compat.kafka.transactions.markers.MarkerWriter`.

Source: ``TransactionCoordinator``, ``TransactionStateManager``, ``TransactionMetadata`` of 4.3.
"""
