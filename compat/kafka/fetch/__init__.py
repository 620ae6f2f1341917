"""What fetchers keep between their requests, and the answers, whose records stay in their files."""
