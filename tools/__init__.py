"""What people run: the command line, the pytest plugin, benchmarks, developer tools."""
