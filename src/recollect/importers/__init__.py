"""Importers: files of other products and forms, read into memories."""

from recollect.importers.detect import FORMATS, Format
from recollect.importers.failures import FailedRecord
from recollect.importers.run import ImportInterrupted, ImportReport, import_path

__all__ = [
    "FORMATS",
    "FailedRecord",
    "Format",
    "ImportInterrupted",
    "ImportReport",
    "import_path",
]
