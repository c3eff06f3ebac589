"""`python -m jobs.driver` is the command `streamjoin-driver`."""

from joinlib.lean import lean


def main() -> None:
    lean()
    from jobs.driver.driver import main as run

    run()


if __name__ == "__main__":
    main()
