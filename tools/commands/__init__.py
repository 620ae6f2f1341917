"""One file per command of ``logstore``."""
