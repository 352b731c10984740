"""Run one shell command for a tool call, confined.

Start with `sandbox.find_sandbox`. What the command sees of the machine, and what it may change:

- the workspace, read-only but for the write-set (`staged_copy` says how globs become mounts);
- the system's programs, read-only; next to nothing of /etc; no home, no /run, no /sys;
- a private /tmp (with HOME in it), /dev, /proc, and its own namespaces of processes and network;
- nothing, for writing, in a repository that was there when it started, or in what the engine runs;
  a repository that it makes is renamed when it ends, and reported;
- no files of keys, unless they are named.

The command ends with everything it started. Its time, memory, tasks, disk and output are bounded.
"""
