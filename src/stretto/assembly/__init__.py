"""The only wiring: settings, folders and adapters into what every surface talks to."""
