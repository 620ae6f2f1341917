"""The commit log, in which the messages of all topics stand."""
