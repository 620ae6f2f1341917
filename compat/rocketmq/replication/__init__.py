"""Master and slave: one broker's commit log and tables, followed by another broker."""
