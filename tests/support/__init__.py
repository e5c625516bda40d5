"""What tests need from the machine: a private PostgreSQL, Docker with the sandbox image, fresh databases."""
