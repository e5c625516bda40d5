"""Where a buyer's script runs: base.py is the protocol, docker.py the real one, process.py for one's own code only."""
