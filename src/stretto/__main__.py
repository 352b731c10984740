from stretto.cli.main import main

main()
