"""`python -m stretto`: the command, where no script of that name is installed."""

from stretto.cli.main import main

main()
