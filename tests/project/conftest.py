from tests.cli.scene import scene

__all__ = ["scene"]
