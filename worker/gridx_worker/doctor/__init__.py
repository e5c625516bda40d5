"""`gridx-worker doctor`: whether this machine can be lent, and how fast it trains."""
