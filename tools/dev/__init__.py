"""Tools for people who build logstore: checks, the demo, the real brokers as peers."""
