"""Where benchmark files come from: sources, licences, and the hashes that are known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ekphory.errors import DatasetError


@dataclass(frozen=True, slots=True)
class Source:
    """Where a benchmark comes from.

    Attributes:
        title: Its name and publication.
        licence: Under what terms; "none stated" where its source states none.
        obtain: How a user gets the original.
    """

    title: str
    licence: str
    obtain: str


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """One file that was read.

    Attributes:
        name: File name, with its folder inside the benchmark.
        sha256: Hash of its bytes, hexadecimal.
        benchmark: Name of the benchmark that is known to have this file; None where unknown.
    """

    name: str
    sha256: str
    benchmark: str | None

    @property
    def verified(self) -> bool:
        """Whether the hash is known."""
        return self.benchmark is not None


UNKNOWN = Source("unknown set of the user's own", "not known", "It is the user's own.")

LOCOMO = Source(
    "LoCoMo (Maharana et al., ACL 2024)",
    "CC BY-NC 4.0",
    "Download data/locomo10.json from https://github.com/snap-research/locomo",
)

SOURCES: Mapping[str, Source] = {
    "locomo_dev": Source(
        f"{LOCOMO.title}, conversations 26, 30, 41, 42 and 43", LOCOMO.licence, LOCOMO.obtain
    ),
    "realtalk": Source(
        "REALTALK (Lee et al., 2025)",
        "none stated",
        "Download the data folder of https://github.com/danny911kr/REALTALK",
    ),
    "beam_100k": Source(
        "BEAM (Tavakoli et al., 2025), chats of 100,000 tokens",
        "none stated",
        "Download the chats of https://github.com/mohammadtavakoli78/BEAM",
    ),
    "temporal_dev": Source(
        "Temporal Memory Dataset (Zyphra), first half",
        "none stated",
        "Download https://github.com/Zyphra/TemporalMemoryDataset",
    ),
    "2wiki_dev": Source(
        "2WikiMultiHopQA (Ho et al., COLING 2020), 500 questions over one corpus",
        "Apache-2.0 (questions), MIT (corpus)",
        "Questions: https://github.com/Alab-NII/2wikimultihop, "
        "corpus: https://github.com/OSU-NLP-Group/HippoRAG",
    ),
    "scifact": Source(
        "SciFact (Wadden et al., EMNLP 2020) in BEIR's form",
        "CC BY 4.0 (claims), ODC-By (abstracts)",
        "Download the zip archive that https://github.com/beir-cellar/beir lists as scifact",
    ),
}

KNOWN_HASHES: Mapping[str, str] = {
    "6b0efd42cfc29bcb3801cc62f8b595b7e7f111969fddc69740b7054e67a6819a": "locomo_dev",
    "1c9979aed9f236d0d6700ff90f205f01c1796875da7956cf94672edd87753933": "locomo_dev",
    "403b6e990fa63052684e08e35987ca8776054b8dde2209c4d73eb3c30a3bc373": "locomo_dev",
    "e623f2941f4fca270aeb81cce5c94a30f5c4e803946022fbfb1d0dc122305d22": "locomo_dev",
    "4e2ebc5ef0bc9c63b15dec72ea41820a187c9c5b3c3cb4b829a35c25dee5bef7": "realtalk",
    "c90ff86f382c8d27293bb53c94c3111a3f5ab36c288504b20cff0b6940c53c9d": "realtalk",
    "b0208e60b8444a236ce4597e24f34d107193142659767e95852212ac0caf5ac2": "realtalk",
    "1059b17b10d8ebe61babd749dd9e14f91fee974a0a764101417cc3a1b1373654": "beam_100k",
    "453a350bc5a7f570c90848dbc72d7d24dba8c768f1722502738d8926f399f893": "beam_100k",
    "21053c60df67519fc03d97228b490066e2c429ced1ed690f9126d2da11077669": "beam_100k",
    "35cc98e55d0e605c5185184c672d9091e2a9514e5bc74931c537e4f6831bb136": "temporal_dev",
    "0f7c0312871457f12fb3cf69c81bbe89bff7f95ac8e3b02bb77ae960e93623bd": "temporal_dev",
    "69a1d527ef693dbb7057fe4ac8a5f4c2de37ac5215eedf6cbbd80e777f94a9d2": "temporal_dev",
    "9ee65d9b5342b02d66b25848d1f619c70215d810ea332490e4807901fcbc4d37": "2wiki_dev",
    "46b3e7f32ac5717117341f69a63e03ad85e6b6c02e649cdcf7f2ff9b368964df": "2wiki_dev",
    "1bcc98cb0db33dfdfd88609d4677b713acfb1222bc9bd42bf0bb4d455d310337": "2wiki_dev",
    "d2d0b03f01859f5392dcfd1cd53179ae3d6fdd1291bfa579b2e34b1665e1cef1": "scifact",
    "8ff84a7c903f722981cd8d595c022660140c51867b27608a6d4910db86080313": "scifact",
    "0864bb985e0ca2367ba217977e72004d549054b2b06666ed9d4825ac7c21284c": "scifact",
    "a53f2114831916c096b6c37d9e54da68cef4efdcdbd5ed46533601af972acf1d": "scifact",
}
"""Benchmark by the SHA-256 of one of its files. An unknown hash is shown, and is no error."""


def read_hashes(folder: Path, names: Sequence[str]) -> tuple[BenchmarkFile, ...]:
    """Hash the files of a benchmark and look the hashes up.

    Args:
        folder: The benchmark's folder.
        names: The files, relative to it.

    Raises:
        DatasetError: One of the files is missing.
    """
    return tuple(_read_hash(folder, name) for name in names)


def benchmark_of(files: Sequence[BenchmarkFile]) -> str | None:
    """Give the one known benchmark that all these files belong to; None where there is none."""
    names = {file.benchmark for file in files}
    return names.pop() if len(names) == 1 else None


def source_of(files: Sequence[BenchmarkFile], *, otherwise: Source) -> Source:
    """Give the source of the benchmark these files belong to, or the other one."""
    return SOURCES.get(benchmark_of(files) or "", otherwise)


def _read_hash(folder: Path, name: str) -> BenchmarkFile:
    path = folder / name
    if not path.is_file():
        raise DatasetError(
            f"{path}: no such file. Give a benchmark that has {name}; how to get the originals: "
            + "; ".join(f"{known}: {source.obtain}" for known, source in SOURCES.items())
        )
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return BenchmarkFile(name, digest, KNOWN_HASHES.get(digest))
