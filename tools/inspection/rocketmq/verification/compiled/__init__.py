"""What of a verification is vectorised; needs the extra ``columns``."""
