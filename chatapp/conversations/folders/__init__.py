"""Folders: conversations under one name, with instructions and a default agent of their own."""
