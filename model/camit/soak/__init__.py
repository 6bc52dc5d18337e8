"""Endurance tests of drafts and sessions: random operations, kills, many confirmations, threads."""
