"""The tables of all packages. Django looks for models here; each package declares its own."""

from chatapp.operations.discovery import import_every

import_every("models")
