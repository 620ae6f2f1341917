"""One module per subcommand of `logstore`."""
