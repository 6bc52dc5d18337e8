"""How fast the engine is, on this machine, beside others."""
