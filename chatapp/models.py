"""Imports the models of all packages, because Django looks for them here."""

from chatapp.operations.discovery import import_every

import_every("models")
