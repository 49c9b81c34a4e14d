"""The RabbitMQ of the tests: that of the benchmarks."""

import pytest

from bench.rabbitmq_server import PROGRAMS, RabbitServer, rabbit_folder

__all__ = ["RabbitServer", "needs_rabbitmq", "rabbit_folder"]
needs_rabbitmq = pytest.mark.skipif(
    not (PROGRAMS / "rabbitmq-server").exists(), reason="RabbitMQ is not installed (Debian: rabbitmq-server)"
)
