#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the shards of the benchmark of vfm-caption score: real videos with true and faulty captions.

    clips.py FOLDER CLIPS

FOLDER gets tuning.tar, test.tar and test-elsewhere.tar. For each fault there are CLIPS clips, an even number, each
twice: as FAULT-NUMBER-true with its own caption, as FAULT-NUMBER-false with one that has the fault. Two clips go
together: the caption of each is the other's faulty one, so for each fault the true and the faulty captions are the same
texts. The shard elsewhere has the captions of the test with other clips, of which neither is true. Needs ffmpeg.
"""
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

import shapes

SEEDS = {"tuning": 100, "test": 200}


def encode(clips: np.ndarray) -> list:
    """Each clip as an mp4 of its own: one ffmpeg cuts them all."""
    with tempfile.TemporaryDirectory() as folder:
        frames = shapes.FRAMES
        subprocess.run(
            ["ffmpeg", "-nostdin", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s",
             f"{shapes.SIDE}x{shapes.SIDE}", "-r", str(shapes.RATE), "-i", "-", "-c:v", "libx264", "-preset",
             "veryfast", "-crf", "16", "-pix_fmt", "yuv420p", "-g", str(frames), "-keyint_min", str(frames),
             "-sc_threshold", "0", "-bf", "0", "-threads", "1", "-f", "segment", "-segment_frames",
             ",".join(str(frames * i) for i in range(1, len(clips))), "-reset_timestamps", "1", f"{folder}/%06d.mp4"],
            input=clips.tobytes(), check=True)
        return [path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())]


def cases(part: str, count: int) -> list:
    """(key, spec, faulty spec), `count` of each fault."""
    rng, found = np.random.default_rng(SEEDS[part]), []
    for fault in shapes.FAULTS:
        n = 0
        while n < count:
            spec = shapes.draw_spec(rng, part)
            wrong = shapes.faulty(spec, fault, rng, part)
            if wrong is not None:
                found += [(f"{fault}-{n:04}", spec, wrong), (f"{fault}-{n + 1:04}", wrong, spec)]
                n += 2
    return found


def write_shard(path: pathlib.Path, rows: list, videos: list) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for (key, *specs), video in zip(rows, videos):
            for which, spec in zip(("true", "false"), specs):
                for ending, data in (("mp4", video), ("txt", shapes.caption(spec).encode())):
                    member = tarfile.TarInfo(f"{key}-{which}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def make(folder: pathlib.Path, part: str, count: int) -> None:
    rows = cases(part, count)
    rng = np.random.default_rng(SEEDS[part] + 1)
    videos = encode(shapes.draw([shapes.Scene(spec, rng) for _, spec, _ in rows], np.arange(shapes.FRAMES)))
    assert len(videos) == len(rows), (len(videos), len(rows))
    write_shard(folder / f"{part}.tar", rows, videos)
    if part == "test":
        write_shard(folder / "test-elsewhere.tar", rows, [videos[i] for i in elsewhere(rows, rng)])


def elsewhere(rows: list, rng) -> list:
    """For each row the number of another one, of whose clip neither of its captions is true."""
    order, found = rng.permutation(len(rows)), [0] * len(rows)
    for place, i in enumerate(order):
        said = {shapes.caption(spec) for spec in rows[i][1:]}
        ahead = (order[(place + step) % len(rows)] for step in range(1, len(rows)))
        found[i] = next(j for j in ahead if shapes.caption(rows[j][1]) not in said)
    return found


def main() -> None:
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for part in SEEDS:
        make(folder, part, count)


main()
