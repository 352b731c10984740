"""Run one shell command for a tool call, confined. In: text and a Confinement. Out: Ran or Refused.

Start with `find.find_sandbox`. What the command sees of the machine, and what it may change:

- the workspace, read-only but for the write-set (`write_set` says how globs become mounts);
- the system's programs, read-only; next to nothing of /etc; no home, no /run, no /sys;
- a private /tmp (with HOME in it), /dev, /proc, and its own namespaces of processes and network;
- nothing, for writing, under the workspace's `.git` or any other that was there when it started
  (a new one that it makes deeper, in a directory that is mounted writable, is reported).

The command ends with everything it started. Its time, memory, tasks and output are bounded.
"""
