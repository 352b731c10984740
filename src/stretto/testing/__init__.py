"""Public fakes for authors and tests: a scripted model, a virtual clock, a recipe test runner."""
