"""Start, limit, watch and end other programs, with everything that they start in turn.

- `programs` finds the program that is meant; `python` makes command lines for our own interpreter.
- `guarded` runs a program of somebody else beneath the script `guard`, which ends the whole process
  tree when the program ends, when it is told to, and when this process dies.
- `limited` runs a program to its end within limits, which `watchdog` holds for the whole tree.
- `worker` runs a program of ours on bytes; the script `starter` makes it end when this process does.
- `process_table` is the only reader of /proc; `identity` names a process so that others can tell
  later whether it is dead.
"""
