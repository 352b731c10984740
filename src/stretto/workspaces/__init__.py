"""Where writers work: paths beneath a root, isolated copies, diffs, merge-back, the sandbox."""
