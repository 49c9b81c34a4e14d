"""The traffic process: commands on standard input, replies on standard output."""

import resource
import signal

from netkit.lab.traffic.engine import serve


def main() -> None:
    """Raise the limit of open files, since every NIC and flow needs one, and serve."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the lab, and with it the pipe
    serve(0, 1)


if __name__ == "__main__":
    main()
