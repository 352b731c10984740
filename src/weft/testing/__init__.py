"""Public fakes for authors and tests: a scripted model that needs no key and no network."""
