"""Remoting commands as bytes: headers, fields, codes."""
