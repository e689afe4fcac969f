"""Importers: files of other products and forms, read into memories."""

from recollect.documents.exclusion import Exclusion
from recollect.importers.detect import FORMATS, Format
from recollect.importers.documents import DocumentOptions, import_documents, watch_documents
from recollect.importers.failures import FailedRecord
from recollect.importers.report import ImportInterrupted, ImportReport
from recollect.importers.run import import_path

__all__ = [
    "FORMATS",
    "DocumentOptions",
    "Exclusion",
    "FailedRecord",
    "Format",
    "ImportInterrupted",
    "ImportReport",
    "import_documents",
    "import_path",
    "watch_documents",
]
