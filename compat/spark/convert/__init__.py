"""
Whole stores from one layout to the other, as a Spark job.

Only descriptions of work go through Spark: a task reads files and writes files. What is derived
from a log (consume queues, indexes) is not converted but folded from the new log, by the same code
that recovers a store after a crash. Until all of it stands nothing is found under the target's
name, and a job that was killed goes on where it was.
"""

from __future__ import annotations
