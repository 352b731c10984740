"""Goals: verifiers, and the loop that runs again until one passes."""
