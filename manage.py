#!/usr/bin/env python
"""The command line of the service."""

import gc
import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    gc.disable()  # nothing of what is imported becomes garbage: looking for it would be a quarter of the start
    import django
    from django.core.management import execute_from_command_line

    django.setup()
    gc.freeze()
    gc.enable()
    execute_from_command_line(sys.argv)
