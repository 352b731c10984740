"""The background process of `stretto run --detach`. In: where the user stood, the words of a command.

It starts in a folder of ours and goes there only now: all that decides what is imported has been
made absolute by then.
"""

import os
import sys

from stretto.cli.main import main

if __name__ == "__main__":
    os.chdir(sys.argv[1])
    main(sys.argv[2:])
