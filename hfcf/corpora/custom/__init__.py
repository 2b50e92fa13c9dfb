"""A user's own rows in a user's own columns: into the library's rows (`from_dataset`) and back (`to_dataset`)."""
