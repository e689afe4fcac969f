"""An S3 that is slow, fails now and then, and says 500 after it did what it was asked for."""

import random
import sys
import threading
import time

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from process import report, wait_for_go
from werkzeug.serving import WSGIRequestHandler, make_server

DELAY_SECONDS = 0.03
REFUSED, UNTOLD = 0.01, 0.005
"""Shares of the requests that are not done, and that are done and answered with an error."""


class Quiet(WSGIRequestHandler):
    def log(self, *_):
        return


def make_application(moto, chance, failing):
    def answer(environ, start_response):
        time.sleep(DELAY_SECONDS)
        drawn = chance.random() if failing.is_set() else 1.0
        if drawn < REFUSED:
            return refuse(start_response)
        if drawn < REFUSED + UNTOLD:
            list(moto(environ, lambda *_: None))
            return refuse(start_response)
        return list(moto(environ, start_response))

    return answer


def refuse(start_response):
    start_response("500 Internal Server Error", [("Content-Length", "0")])
    return [b""]


def main():
    seed, bucket = int(sys.argv[1]), sys.argv[2]
    failing = threading.Event()
    moto = DomainDispatcherApplication(create_backend_app)
    application = make_application(moto, random.Random(seed), failing)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    named = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **named)
    client.create_bucket(Bucket=bucket)
    report(url=url)
    wait_for_go()
    failing.set()
    report(failing=True)
    wait_for_go()
    failing.clear()
    report(failing=False)
    wait_for_go()


main()
