#!/usr/bin/env python
"""The command line of the service."""

import gc
import os
import sys

if __name__ == "__main__":
    # Python decodes bytes that are not UTF-8 to lone surrogates, which no database stores.
    unreadable = [each for each in sys.argv[1:] if any("\ud800" <= sign <= "\udfff" for sign in each)]
    if unreadable:
        told = (os.fsencode(each).decode("utf-8", "backslashreplace") for each in unreadable)
        sys.stderr.write(f"Arguments must be UTF-8; these are not: {', '.join(told)}\n")
        sys.exit(2)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    gc.disable()  # imports create no garbage, and looking for it takes a quarter of the start
    import django
    from django.core.management import execute_from_command_line

    django.setup()
    gc.freeze()
    gc.enable()
    execute_from_command_line(sys.argv)
