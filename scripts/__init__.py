"""Helpers behind the Makefile and the build hook; standard library only, they run before anything else."""
