"""The admin pages of models, how one is connected, and usage."""

from chatapp.providers.admin import model_configs, usage

__all__ = ["model_configs", "usage"]
