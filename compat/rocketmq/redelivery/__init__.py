"""Messages put again: delayed, timed, sent back."""
