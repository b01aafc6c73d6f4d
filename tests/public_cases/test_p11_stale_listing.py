"""P11: a listing that is out of date. Two processes, two stores on one S3 bucket: each publication is seen at once."""

from __future__ import annotations

import subprocess
import sys

from storage.objects import open_store
from tests.support.s3_server import credential, make_bucket, moto_server

_POLLER = """
import sys
from storage.objects import open_store
from storage.objects.credentials import Credential
store = open_store(sys.argv[1], endpoint=sys.argv[2], region="us-east-1", credentials=lambda: Credential("a", "b"))
for _ in sys.stdin:
    found = [(stat.key, len(store.get(stat.key))) for stat in store.list("place/")]
    print(found, flush=True)
"""


def test_what_another_process_published_is_listed_and_opens() -> None:
    with moto_server() as endpoint:
        url = f"s3://{make_bucket(endpoint)}/site"
        publisher = open_store(url, endpoint=endpoint, region="us-east-1", credentials=credential)
        command = [sys.executable, "-c", _POLLER, url, endpoint]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as poller:
            assert poller.stdin and poller.stdout

            def poll() -> str:
                assert poller.stdin and poller.stdout
                poller.stdin.write("\n")
                poller.stdin.flush()
                return poller.stdout.readline().strip()

            assert poll() == "[]"
            publisher.put("place/one", b"1")
            assert poll() == "[('place/one', 1)]"
            publisher.put("place/two", b"22")
            publisher.put("place/one", b"now longer")
            assert poll() == "[('place/one', 10), ('place/two', 2)]"
            poller.stdin.close()
            assert poller.wait(10) == 0
