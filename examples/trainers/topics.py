"""Build the demo's dataset: the reference pages that every CPython carries (pydoc_data.topics, PSF licence).

    python examples/trainers/topics.py /tmp/topics

The same Python gives the same dataset, digest for digest.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from pydoc_data.topics import topics

from storage.datasets import Cut, Manifest, from_text, write
from storage.objects import Store, open_store


def build(store: Store, folder: str = "", context: int = 64) -> Manifest:
    """Write the dataset into a folder of a store; samples of `context` bytes and the one that follows them."""
    texts = (topics[name] for name in sorted(topics))
    about = {"title": "Python reference pages", "licence": "PSF-2.0", "python": sys.version.split()[0]}
    rows = from_text(texts, context + 1, stride=context)
    return write(store, rows, folder=folder, cut=Cut(block_bytes=4096, shard_bytes=64 << 10), about=about)


def main() -> None:
    """Build into a folder or URL."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("where", help="a folder or the URL of a store")
    parser.add_argument("--context", type=int, default=64)
    options = parser.parse_args()
    url = options.where if "://" in options.where else Path(options.where).absolute().as_uri()
    manifest = build(open_store(url), context=options.context)
    print(f"{manifest.rows} samples in {len(manifest.shards)} shards, dataset {manifest.digest}")


if __name__ == "__main__":
    main()
