"""``python -m tidewheel`` is ``tidewheel``."""

from tidewheel.cli.main import main

if __name__ == "__main__":
    main()
