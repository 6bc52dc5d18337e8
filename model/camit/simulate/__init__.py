"""Simulated users, protocols, metrics and the paper's tables: `camit simulate`."""
