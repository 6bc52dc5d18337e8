"""Helpers behind the Makefile and the build hook. Standard library only: they run before anything is installed."""
