"""What the compiled loops of both formats share; needs the extra `columns`."""
