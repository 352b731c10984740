"""Settings: `stretto.yaml` of the user and of the project, the environment, defaults."""
