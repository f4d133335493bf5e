"""Everything that touches disk; computes nothing."""
