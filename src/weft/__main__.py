from weft.cli.main import main

main()
