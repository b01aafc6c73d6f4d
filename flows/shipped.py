"""The shipped run's dataset: this Python's reference texts, sharded, in the store of the region that is its home."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from flows.datasets import copy_dataset, find_manifest
from flows.messages import DatasetRef
from flows.settings import PROJECT
from flows.sites import Sites
from storage.objects import open_store

HOME_REGION = "local-shanghai"
FOLDER = "datasets/topics"
RUN = "gpt-mini"


def build_texts(scratch: Path) -> Path:
    """Shard the texts into a folder store below `scratch` and return it; the same Python gives the same bytes."""
    store = scratch / "texts"
    script = PROJECT / "examples" / "trainers" / "topics.py"
    command = [sys.executable, str(script), str(store / FOLDER)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return store


def published(sites: Sites) -> bool:
    """Say whether the home region's store holds the dataset."""
    return find_manifest(sites.store(HOME_REGION), FOLDER) is not None


def publish(texts: Path, sites: Sites) -> None:
    """Hand the dataset to the home region's store."""
    source = open_store(texts.resolve().as_uri())
    manifest = find_manifest(source, FOLDER)
    assert manifest is not None, "it was built a moment ago"
    ref = DatasetRef(digest=manifest.digest, source=sites.place(HOME_REGION), folder=FOLDER, bytes=manifest.size)
    copy_dataset(ref, source, sites.store(HOME_REGION), lambda: False)
