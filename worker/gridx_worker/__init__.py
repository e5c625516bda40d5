"""The Grid-X agent: polls a server for training work and runs it in a sandbox on this machine."""

__version__ = "0.1.0"
