"""Helpers of the tests in this folder: a throw-away source tree, the project's tools as modules."""
import importlib
import os
import sys
import tempfile

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tool(name):
    """The module tools/<name>.py."""
    path = os.path.join(PROJECT, "tools")
    if path not in sys.path:
        sys.path.insert(0, path)
    return importlib.import_module(name)


class Tree:
    """A temporary folder holding `files` (path: text); removed at the end of the `with`."""

    def __init__(self, files):
        self.files = files

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="topknot-test-")
        for path, text in self.files.items():
            full = os.path.join(self.folder.name, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return self.folder.name

    def __exit__(self, *unused):
        self.folder.cleanup()
