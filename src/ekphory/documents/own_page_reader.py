"""Reads pages with the models that come inside RapidOCR's wheel: no network, no key."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ekphory.documents.extra import from_docs_extra
from ekphory.documents.page_reader import Picture

if TYPE_CHECKING:
    from rapidocr import RapidOCR


class OwnPageReader:
    """PP-OCR on ONNX Runtime: Latin letters, Chinese and Japanese; about a second a page."""

    @property
    def name(self) -> str:
        """The library's name, in place of a version of its models."""
        return "rapidocr"

    def read(self, picture: Picture) -> str:
        """Give the lines from top to bottom."""
        # It expects what OpenCV reads: blue, green, red.
        found = self._engine(np.ascontiguousarray(picture[:, :, ::-1]))
        return "\n".join(getattr(found, "txts", None) or ())

    @cached_property
    def _engine(self) -> RapidOCR:
        with from_docs_extra("Reading scanned pages"):
            from rapidocr import RapidOCR
        return RapidOCR(params={"Global.log_level": "critical"})
