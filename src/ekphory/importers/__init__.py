"""Importers: files of other products and forms, read into memories."""

from ekphory.documents.blocks import Exclusion
from ekphory.importers.detect import FORMATS, Format
from ekphory.importers.documents import DocumentOptions, import_documents, watch_documents
from ekphory.importers.report import FailedRecord, ImportInterrupted, ImportReport
from ekphory.importers.run import import_path

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
