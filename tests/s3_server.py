"""A real S3 server for tests: SeaweedFS on free ports of the loopback, stopped by whoever started it."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

START_SECONDS = 90
"""It takes four seconds on a quiet machine."""
STOP_SECONDS = 15
KEY, SECRET = "coprlake-tests", "not-a-secret"
PARTS = ("master.port", "volume.port", "filer.port", "s3.port")


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """Start a server that keeps its files in `folder`; gives the environment by which clients find it.

    Raises:
        TimeoutError: it does not answer in time.
    """
    program = Path(sys.executable).with_name("weed")
    ports = _free_ports(2 * len(PARTS))
    own = dict(zip(PARTS, ports, strict=False))
    grpc = {f"{part}.grpc": port for part, port in zip(PARTS, ports[len(PARTS) :], strict=True)}
    settings = folder / "s3.json"
    keys = [{"accessKey": KEY, "secretKey": SECRET}]
    settings.write_text(json.dumps({"identities": [{"name": "tests", "credentials": keys, "actions": ["Admin"]}]}))
    command = [str(program), "server", f"-dir={folder}", "-s3", f"-s3.config={settings}"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=0", "-master.volumeSizeLimitMB=64"]
    command += [f"-{name}={port}" for name, port in (own | grpc).items()]
    command += [f"-{part}.localSocket={folder / part}.sock" for part in ("filer", "s3")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            endpoint = f"http://127.0.0.1:{own['s3.port']}"
            _wait(endpoint, server, folder / "log")
            yield {
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_ALLOW_HTTP": "true",
                "AWS_EC2_METADATA_DISABLED": "true",
            }
        finally:
            server.kill()  # what it stores is of no use to anybody; an orderly end takes it ten seconds
            server.wait(STOP_SECONDS)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; all are held until the last is found, so that they differ."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]


def _wait(endpoint: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    """Return when the server answers, even if it is only to refuse who has no key."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            urllib.request.urlopen(endpoint, timeout=5).close()
        except urllib.error.HTTPError as error:
            if error.code == 403:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise TimeoutError(f"no S3 server at {endpoint}:\n{log.read_text(errors='replace')[-2000:]}")
