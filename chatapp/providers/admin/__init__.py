"""The admin pages of models, of connecting a model, and of usage."""

from chatapp.providers.admin import model_configs, usage

__all__ = ["model_configs", "usage"]
