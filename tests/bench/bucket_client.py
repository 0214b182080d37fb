# SPDX-License-Identifier: Apache-2.0
"""bucket_client.py CLIENT write|read s3://BUCKET/KEY MIB ROUNDS: as bucket_client, by boto3 or by MSC's clients (msc-python,
msc-rust; with -file through a file of a RAM disk, otherwise in memory). "socket" is no client but the least that any can take:
one connection, a request signed ahead without a hash of its body, and the bytes from memory to the kernel or back (by TLS
over https).
Prints processor seconds and elapsed seconds of all rounds after a first one."""
import io
import os
import resource
import socket
import ssl
import sys
import time
from urllib.parse import urlsplit

client, what, address, mib, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
bucket, key = address.removeprefix("s3://").split("/", 1)
contents = os.urandom(mib << 20)

if client == "boto3":
    import boto3

    s3 = boto3.client("s3")

    def act():
        if what == "write":
            s3.upload_fileobj(io.BytesIO(contents), bucket, key)
        else:
            held = io.BytesIO()
            s3.download_fileobj(bucket, key, held)
            assert held.getbuffer().nbytes == len(contents)
elif client == "socket":
    import boto3
    from botocore.config import Config

    method, operation = ("PUT", "put_object") if what == "write" else ("GET", "get_object")
    signed = boto3.client("s3", config=Config(signature_version="s3v4")).generate_presigned_url(
        operation, Params={"Bucket": bucket, "Key": key})
    url = urlsplit(signed)
    held = memoryview(bytearray(len(contents) + 4096))

    def act():
        connection = socket.create_connection((url.hostname, url.port))
        if url.scheme == "https":
            connection = ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"]).wrap_socket(
                connection, server_hostname=url.hostname)
        with connection:
            length = f"Content-Length: {len(contents)}\r\n" if what == "write" else ""
            request = f"{method} {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n{length}Connection: close\r\n\r\n"
            connection.sendall(request.encode())
            if what == "write":
                connection.sendall(contents)
            received = 0
            while count := connection.recv_into(held[received:]):
                received += count
            assert bytes(held[9:12]) == b"200", bytes(held[:received])
            assert what == "write" or received > len(contents)
else:
    import multistorageclient as msc

    options = {"base_path": bucket, "endpoint_url": os.environ["AWS_ENDPOINT_URL"], "region_name": "us-east-1"}
    if os.environ.get("AWS_CA_BUNDLE"):
        options["verify"] = os.environ["AWS_CA_BUNDLE"]
    if client.startswith("msc-rust"):
        options["rust_client"] = {"allow_http": True}
    keys = {"access_key": os.environ["AWS_ACCESS_KEY_ID"], "secret_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
    config = {"profiles": {"p": {"storage_provider": {"type": "s3", "options": options},
                                 "credentials_provider": {"type": "S3Credentials", "options": keys}}}}
    storage = msc.StorageClient(msc.StorageClientConfig.from_dict(config, profile="p"))
    file = client.endswith("-file")
    path = f"/dev/shm/vfm-bench-{os.getpid()}"

    def act():
        if what == "write":
            storage.upload_file(key, path if file else io.BytesIO(contents))
        elif file:
            storage.download_file(key, path)
            assert os.path.getsize(path) == len(contents)
        else:
            assert len(storage.read(key)) == len(contents)

    if file:
        with open(path, "wb") as out:
            out.write(contents)


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


act()
before, begin = used(), time.time()
for _ in range(rounds):
    act()
print(f"{used() - before:.4f} {time.time() - begin:.4f}")
if client.endswith("-file"):
    os.unlink(path)
