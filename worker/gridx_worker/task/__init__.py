"""What is mounted into the sandbox. Standard library (and the sandbox's own torch) only: nothing here may import gridx_worker."""
