#!/usr/bin/env python3
# Passes requests on to an object store, injects faults, and logs each request.
# Usage: bucket-proxy.py SERVER_PORT FOLDER [SEED]
# SPDX-License-Identifier: Apache-2.0
"""Listens on a free port of 127.0.0.1 and writes the number to FOLDER/port. Requests go to 127.0.0.1:SERVER_PORT as they
are, with the Host of the client, so that the client's signature holds.

FOLDER/requests.jsonl gets a line for each request when it is over: method, path, query, range, the status that the client
saw ("" if none), the fault, the bytes of the bodies (up, down), how many requests were under way (at_once), and the
headers of the request. The file may be truncated at any time.

FOLDER/faults has a rule in each line: FAULT [NAME=VALUE]... It is read again when it has changed, and then all counts
start again. The first rule that applies to a request is carried out, and each "pace" rule that applies.
Which requests:
  method=GET,PUT   path=REGEX   query=REGEX    (a search, in the decoded path and the query as sent)
  header=REGEX     one with a header whose name, in lower case, matches
  nth=N            only the N-th of the requests that match
  skip=N           not the first N of these
  times=N          at most N of these
  chance=P         each with this probability. A request that is sent again is drawn again. Draws depend on SEED only.
  from=S, until=S  seconds since the rules were read
Faults:
  error status=503 code=SlowDown [retry_after=S]   an answer of S3 with this status and code
  reset            the connection is reset, and the server sees nothing of the request
  lost             the server does the work, and the connection is reset in place of the answer
  reset-body, truncate   the connection is reset, or closed, after half of the answer's body
  stall            nothing is sent after half of the answer's body, for 600 seconds
  silent           nothing is answered, for 600 seconds
  flip, flip-up    a bit in the middle of the answer's body, or of the request's body, is wrong
  pace [rate=BYTES] [latency=S]    so many bytes a second in a connection; a pause before each answer
  stale seconds=S  a listing as it was S seconds ago: an earlier answer, or one without the objects that are newer
  unconditional    If-None-Match and If-Match have no effect, as far as the client can see
  run program=PATH the program runs before the request is passed on; it is told method and path
"""
import calendar
import hashlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

BLOCK = 1 << 16


class Rule:
    def __init__(self, number, line):
        self.fault, *options = line.split()
        self.number = number
        self.options = dict(option.split("=", 1) for option in options)
        self.seen = self.done = 0

    def number_of(self, name, other):
        return float(self.options.get(name, other))

    def matches(self, request, seconds):
        options = self.options
        return ("method" not in options or request.method in options["method"].split(",")) and (
            re.search(options.get("path", ""), request.path) is not None) and (
            re.search(options.get("query", ""), request.query) is not None) and (
            "header" not in options or any(re.fullmatch(options["header"], name) for name in request.headers)) and (
            self.number_of("from", 0) <= seconds <= self.number_of("until", 1e9)) and (
            self.fault != "stale" or "list-type=" in request.query)

    def applies(self, request, seconds, draw):
        if not self.matches(request, seconds):
            return False
        self.seen += 1
        if "nth" in self.options and self.seen != int(self.options["nth"]):
            return False
        if self.seen <= int(self.options.get("skip", 0)) or self.done >= int(self.options.get("times", 1 << 60)):
            return False
        if "chance" in self.options and draw(self.number) >= float(self.options["chance"]):
            return False
        self.done += 1
        return True


class Rules:
    def __init__(self, file, seed):
        self.file, self.seed, self.lock, self.stamp = file, seed, threading.Lock(), None
        self.rules, self.begin, self.times = [], time.monotonic(), {}

    def read_again(self):
        try:
            state = os.stat(self.file)
        except FileNotFoundError:
            state = None
        stamp = state and (state.st_mtime_ns, state.st_ino, state.st_size)
        if stamp == self.stamp:
            return
        self.stamp, self.begin, self.times, lines = stamp, time.monotonic(), {}, []
        if state:
            with open(self.file, encoding="utf-8") as file:
                lines = [line for line in file.read().splitlines() if line.strip()]
        self.rules = [Rule(number, line) for number, line in enumerate(lines)]

    def of(self, request):
        """The rule whose fault the request gets, or None, and the rules that set its pace."""
        with self.lock:
            self.read_again()
            what = f"{request.method} {request.path} {request.query} {request.headers.get('range', '')}"
            time_of_it = self.times[what] = self.times.get(what, 0) + 1

            def draw(number):
                text = f"{self.seed} {number} {what} {time_of_it}"
                return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2 ** 32

            seconds = time.monotonic() - self.begin
            paces = [rule for rule in self.rules if rule.fault == "pace" and rule.applies(request, seconds, draw)]
            for rule in self.rules:
                if rule.fault != "pace" and rule.applies(request, seconds, draw):
                    return rule, paces
            return None, paces


class Head:
    """The first lines of a request or answer, up to the empty one."""

    def __init__(self, text):
        self.first, *lines = text.decode("latin-1").split("\r\n")
        self.lines = [line for line in lines if line]
        self.headers = {}
        for line in self.lines:
            name, value = line.split(":", 1)
            self.headers[name.strip().lower()] = value.strip()

    def without(self, *names):
        self.lines = [line for line in self.lines if line.split(":", 1)[0].strip().lower() not in names]

    def bytes(self):
        return "\r\n".join([self.first, *self.lines, "", ""]).encode("latin-1")


class Request(Head):
    def __init__(self, text):
        super().__init__(text)
        self.method, target, _ = self.first.split(" ", 2)
        path, _, self.query = target.partition("?")
        self.path = urllib.parse.unquote(path)


class Stream:
    """A socket that is read by lines and by counts."""

    def __init__(self, connection):
        self.socket, self.held = connection, b""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def more(self):
        data = self.socket.recv(BLOCK)
        self.held += data
        return bool(data)

    def head(self):
        """What comes before the empty line, or None if the other side has closed."""
        while b"\r\n\r\n" not in self.held:
            if not self.more():
                return None
        text, self.held = self.held.split(b"\r\n\r\n", 1)
        return text

    def some(self, most):
        if not self.held and not self.more():
            raise ConnectionError("closed in a body")
        data, self.held = self.held[:most], self.held[most:]
        return data

    def exactly(self, count):
        blocks = []
        while count > 0:
            blocks.append(self.some(count))
            count -= len(blocks[-1])
        return b"".join(blocks)

    def chunked(self):
        blocks = []
        while True:
            while b"\r\n" not in self.held:
                if not self.more():
                    raise ConnectionError("closed in a chunk")
            line, self.held = self.held.split(b"\r\n", 1)
            count = int(line.split(b";")[0], 16)
            blocks.append(self.exactly(count))
            self.exactly(2)
            if count == 0:
                return b"".join(blocks)

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Closed(Exception):
    """The connection to the client is over."""


class Proxy:
    def __init__(self, server_port, folder, seed):
        self.server_port, self.folder = server_port, folder
        self.rules = Rules(os.path.join(folder, "faults"), seed)
        self.log = os.open(os.path.join(folder, "requests.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.lock, self.at_once, self.listings = threading.Lock(), 0, {}

    def serve(self):
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        port = os.path.join(self.folder, "port")
        with open(port + ".new", "w", encoding="ascii") as file:
            file.write(str(listener.getsockname()[1]))
        os.rename(port + ".new", port)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=Connection(self, connection).run, daemon=True).start()


class Connection:
    def __init__(self, proxy, connection):
        self.proxy, self.client, self.server = proxy, Stream(connection), None

    def run(self):
        try:
            while (text := self.client.head()) is not None:
                self.one(Request(text))
        except (Closed, OSError):
            pass
        finally:
            for stream in (self.client, self.server):
                if stream:
                    stream.socket.close()

    def one(self, request):
        with self.proxy.lock:
            self.proxy.at_once += 1
            at_once = self.proxy.at_once
        self.status, self.up, self.down = "", 0, 0
        rule, paces = self.proxy.rules.of(request)
        began = time.time()
        try:
            self.answer(request, rule, paces)
        finally:
            with self.proxy.lock:
                self.proxy.at_once -= 1
            line = {"method": request.method, "path": request.path, "query": request.query,
                    "range": request.headers.get("range", ""), "status": self.status,
                    "fault": rule.fault if rule else "", "up": self.up, "down": self.down, "at_once": at_once,
                    "time": round(began, 3), "seconds": round(time.time() - began, 3), "headers": request.headers}
            os.write(self.proxy.log, json.dumps(line).encode() + b"\n")

    def body(self, request):
        """The request's body, whole: what is put in tests is small, and a reset must not leave half of it with the server."""
        if request.headers.get("expect", "").lower() == "100-continue":
            self.client.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in request.headers.get("transfer-encoding", ""):
            raise Closed
        body = self.client.exactly(int(request.headers.get("content-length", 0)))
        self.up = len(body)
        return body

    def answer(self, request, rule, paces):
        fault = rule.fault if rule else ""
        if fault == "reset":
            self.client.reset()
            raise Closed
        body = self.body(request)
        time.sleep(sum(pace.number_of("latency", 0) for pace in paces))
        rates = [pace.number_of("rate", 0) for pace in paces if "rate" in pace.options]
        rate = min(rates, default=0)
        if fault == "silent":
            time.sleep(600)
            raise Closed
        if fault == "error":
            return self.say_error(request, rule)
        if fault == "run":
            subprocess.run([rule.options["program"], request.method, request.path], check=False, stdin=subprocess.DEVNULL)
        if fault == "flip-up":
            body = flipped(body)
        if fault == "stale":
            return self.say_stale(request, rule)
        if fault == "unconditional":
            signed = re.search("SignedHeaders=([^,]*)", request.headers.get("authorization", ""))
            names = {"if-match", "if-none-match"} - set(signed[1].split(";") if signed else [])
            request.without(*names)
        head = self.ask(request, body)
        if fault == "lost":
            self.whole_body(request, head)
            self.client.reset()
            raise Closed
        if fault == "unconditional" and " 412 " in head.first:
            self.whole_body(request, head)
            etag = '"' + hashlib.md5(body).hexdigest() + '"'
            return self.say("200 OK", b"", [f"ETag: {etag}"])
        return self.pass_back(request, head, fault, rate)

    def ask(self, request, body):
        request.without("expect", "connection")
        for again in (True, False):
            try:
                if not self.server:
                    self.server = Stream(socket.create_connection(("127.0.0.1", self.proxy.server_port)))
                self.server.socket.sendall(request.bytes() + body)
                while True:
                    text = self.server.head()
                    if text is None:
                        raise ConnectionError("closed before the answer")
                    if not text.startswith(b"HTTP/1.1 100"):
                        return Head(text)
            except OSError:
                # A connection that the server had closed meanwhile is opened again.
                self.server = None
                if not again:
                    raise
        raise AssertionError

    def whole_body(self, request, head):
        if request.method == "HEAD" or re.match(r"HTTP/1\.1 (204|304)", head.first):
            return b""
        if "chunked" in head.headers.get("transfer-encoding", ""):
            return self.server.chunked()
        return self.server.exactly(int(head.headers.get("content-length", 0)))

    def pass_back(self, request, head, fault, rate):
        bodyless = request.method == "HEAD" or re.match(r"HTTP/1\.1 (204|304)", head.first)
        if bodyless or "chunked" in head.headers.get("transfer-encoding", ""):
            body = self.whole_body(request, head)
            if not bodyless:
                head.without("transfer-encoding", "content-length")
                head.lines.append(f"Content-Length: {len(body)}")
            blocks, count = iter([body] if body else []), len(body)
        else:
            count = int(head.headers.get("content-length", 0))
            blocks = self.blocks(count)
        self.status = int(head.first.split()[1])
        self.client.socket.sendall(head.bytes())
        half, begin = count // 2, time.monotonic()
        for block in blocks:
            if fault == "flip" and self.down <= half < self.down + len(block):
                block = flipped(block, half - self.down)
            if fault in ("reset-body", "truncate", "stall") and self.down + len(block) > half:
                self.break_off(fault, block[: half - self.down])
            step = max(1, min(len(block), int(rate / 20))) if rate else len(block)
            for i in range(0, len(block), step):
                self.client.socket.sendall(block[i:i + step])
                self.down += len(block[i:i + step])
                if rate:
                    time.sleep(max(0.0, begin + self.down / rate - time.monotonic()))
        if head.headers.get("connection", "").lower() == "close":
            self.server = None
            raise Closed

    def blocks(self, count):
        while count > 0:
            block = self.server.some(count)
            count -= len(block)
            yield block

    def break_off(self, fault, block):
        self.client.socket.sendall(block)
        self.down += len(block)
        if fault == "stall":
            time.sleep(600)
        if fault == "truncate":
            self.client.socket.shutdown(socket.SHUT_RDWR)
        else:
            # What was sent before a reset may be lost. It is to arrive.
            time.sleep(0.02)
            self.client.reset()
        raise Closed

    def say(self, status, body, lines, method=""):
        self.status = int(status.split()[0])
        head = [f"HTTP/1.1 {status}", *lines, f"Content-Length: {len(body)}", "", ""]
        self.client.socket.sendall("\r\n".join(head).encode() + (b"" if method == "HEAD" else body))
        self.down = 0 if method == "HEAD" else len(body)

    def say_error(self, request, rule):
        code = rule.options.get("code", "InternalError")
        # As AWS does, which tells what it signed, also the session's token.
        told = "".join(f"{name}:{value}\n" for name, value in sorted(request.headers.items()))
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>injected</Message>'
                f"<CanonicalRequest>{told}</CanonicalRequest><RequestId>1</RequestId></Error>").encode()
        lines = ["Content-Type: application/xml"]
        if "retry_after" in rule.options:
            lines.append(f"Retry-After: {rule.options['retry_after']}")
        self.say(f"{rule.options.get('status', '500')} Injected", body, lines, request.method)

    def say_stale(self, request, rule):
        seconds = rule.number_of("seconds", 5)
        key, now = (request.path, request.query), time.time()
        kept = self.proxy.listings.get(key)
        if not kept or now - kept[0] > seconds:
            head = self.ask(request, b"")
            body = self.whole_body(request, head)
            if " 200 " not in head.first:
                return self.say(head.first.split(" ", 1)[1], body, ["Content-Type: application/xml"])

            def older(found):
                stamp = re.search(r"<LastModified>([^<.Z]*)", found[0])
                made = calendar.timegm(time.strptime(stamp[1], "%Y-%m-%dT%H:%M:%S"))
                return found[0] if made < now - seconds else ""
            text = re.sub(r"<Contents>.*?</Contents>", older, body.decode(), flags=re.S)
            kept = self.proxy.listings[key] = (now, text.encode())
        return self.say("200 OK", kept[1], ["Content-Type: application/xml"])


def flipped(data, at=None):
    if not data:
        return data
    at = len(data) // 2 if at is None else at
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]


Proxy(int(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "1").serve()
