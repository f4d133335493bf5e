"""What the paper did: its synthetic problem, its contaminated sets."""
