"""``python -m klnumba`` is the command ``klnumba``."""

from klnumba.cli import main

if __name__ == "__main__":
    main()
