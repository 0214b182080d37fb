#!/usr/bin/env python3
"""Makes videos with copies among them, and scores what vfm-clip unique finds (source_duplicates.sh).

Copies of an original, drawn by the seed:
  crop   0 to 15 % cut off at each side, stretched to the same shape or not
  logo   a still picture over 3 to 5 % of the area, anywhere
  size   a quarter to a half of each side
  crf    encoded at CRF 28 to 35
  rate   10, 12, 15, 25, 30, 50 or 60 frames a second, another one than before
  part   5 to 8 seconds from anywhere, four of each original
  all    all of these at once
A part of a fixed camera in which anything moves for less than a second is as any other minute of that camera, so such
parts are also counted apart (`moving`).
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import array
import concurrent.futures
import json
import math
import os
import random
import subprocess

SECONDS, WIDTH, HEIGHT = 10, 320, 180
KINDS = ["crop", "logo", "size", "crf", "rate", "part", "all"]
MINUTES = 4  # parts of each drawn view
PARTS = 5  # of each given video, at most, spread over it
COPIES = {"part": 4}  # of a kind, where it is not one
STILL = 1  # second of motion; with less nothing moves


def ffmpeg(inputs, graph, out, crf=18, options=()):
    subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", "-y", *inputs, "-filter_complex", graph, "-map", "[out]",
                    "-an", "-c:v", "libx264", "-preset", "veryfast", "-threads", "1", "-pix_fmt", "yuv420p",
                    "-crf", str(crf), *options, out], check=True)


def probe(path, entries):
    found = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", entries, "-of",
                            "default=nw=1:nk=1", path], check=True, capture_output=True, text=True)
    return found.stdout.split()


def originals(rng, videos):
    """(name, inputs, graph); no two show the same."""
    fit = f"scale={WIDTH}:{HEIGHT}:force_original_aspect_ratio=increase,crop={WIDTH}:{HEIGHT},setsar=1[out]"
    for number, video in enumerate(videos):
        length = float(probe(video, "format=duration")[0])
        parts = min(PARTS, int(length // SECONDS))
        for i in range(parts):
            begin = i * (length / parts)
            yield f"video{number}-{i}", ["-ss", f"{begin:.3f}", "-t", str(SECONDS), "-i", video], f"[0:v:0]{fit}"
    noise = lambda: rng.randrange(1, 10**6)
    drawn = [
        lambda: f"mandelbrot=s={WIDTH}x{HEIGHT}:rate=25:start_scale={rng.uniform(0.02, 3)}:end_scale=0.0005:end_pts=2000",
        lambda: f"life=s=40x23:rate=6:mold=10:ratio=0.3:random_seed={noise()}:death_color=#C83232:life_color=#00ff00,"
                f"scale={WIDTH}:{HEIGHT},fps=24",
        lambda: f"cellauto=s=80x45:rate=12:rule={rng.choice([18, 30, 110])}:random_seed={noise()},scale={WIDTH}:{HEIGHT}",
        lambda: f"gradients=s={WIDTH}x{HEIGHT}:rate=25:speed=0.02:n=4:seed={noise()}",
    ]
    for kind, draw in enumerate(drawn):
        for i in range(2 if kind else 1):  # all of its zooms show the same, one sooner than the other
            yield f"drawn{kind}-{i}", ["-f", "lavfi", "-t", str(SECONDS), "-i", draw()], f"[0:v]{fit}"
    for view in range(2):
        still = f"gradients=s={WIDTH}x{HEIGHT}:rate=25:speed=0.00001:n=6:seed={noise()}"
        for i in range(MINUTES):
            yield f"view{view}-{i}", ["-f", "lavfi", "-t", str(SECONDS), "-i", still], walkers(rng) + fit


def walkers(rng):
    """Three boxes that walk about over a still picture, which has a little noise."""
    graph, last = "", "[0:v]"
    for i in range(3):
        wide, high = rng.randrange(14, 40), rng.randrange(24, 60)
        x, y = [f"{rng.uniform(0.2, 0.8):.3f}*{side}*(1+0.8*sin({rng.uniform(0.3, 1.4):.3f}*t+{rng.uniform(0, 6.28):.3f}))"
                for side in (WIDTH, HEIGHT)]
        grey = rng.randrange(30, 230)
        graph += (f"color=c=#{grey:02x}{grey // 2:02x}{255 - grey:02x}:s={wide}x{high}:r=25[b{i}];"
                  f"{last}[b{i}]overlay=x='{x}-w/2':y='{y}-h/2':shortest=1[o{i}];")
        last = f"[o{i}]"
    return graph + f"{last}noise=alls=4:allf=t,"


def moving(path, begin, seconds):
    """Seconds of a part in which it differs from itself half a second on: in 32x32 cells by 0.7 of 255 levels, as root
    mean square, without what all cells have in common."""
    raw = subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", "-threads", "1", "-ss", f"{begin:.3f}", "-t",
                          f"{seconds:.3f}", "-i", path, "-vf", "fps=8,scale=32:32:flags=area,format=gray16le", "-f",
                          "rawvideo", "-"], check=True, capture_output=True).stdout
    levels = array.array("H", raw)
    pictures = [levels[i:i + 1024] for i in range(0, len(levels), 1024)]
    count = 0
    for one, other in zip(pictures, pictures[4:]):
        changes = [a - b for a, b in zip(one, other)]
        mean = sum(changes) / 1024
        count += math.sqrt(sum((c - mean) ** 2 for c in changes) / 1024) > 0.7 * 256
    return count / 8


def copy_of(rng, kind, rate):
    """(filters, CRF, begin, seconds)"""
    has = lambda one: kind in (one, "all")
    filters, crf, begin, seconds = [], 20, 0.0, SECONDS
    if has("part"):
        seconds = rng.uniform(5, 8)
        begin = rng.uniform(0, SECONDS - seconds)
    if has("rate"):
        filters.append(f"fps={rng.choice([r for r in (10, 12, 15, 25, 30, 50, 60) if abs(r - rate) > 0.5])}")
    width, height = WIDTH, HEIGHT
    if has("crop"):
        left, right, top, bottom = [rng.uniform(0, 0.15) for _ in range(4)]
        width, height = round(WIDTH * (1 - left - right)), round(HEIGHT * (1 - top - bottom))
        filters.append(f"crop={width}:{height}:{round(WIDTH * left)}:{round(HEIGHT * top)}")
        if rng.random() < 0.5:
            width, height = WIDTH, HEIGHT
    if has("logo"):
        area, shape = rng.uniform(0.03, 0.05), rng.uniform(1, 3)
        logo_high = math.sqrt(area * width * height / shape)
        logo_wide = area * width * height / logo_high
        x, y = rng.uniform(0, width - logo_wide), rng.uniform(0, height - logo_high)
        level = rng.choice(["white", "black", "red", "#40a0ff"])
        box = lambda c, dx, share: (f"drawbox=x={x + dx * logo_wide:.0f}:y={y:.0f}:w={share * logo_wide:.0f}:"
                                    f"h={logo_high:.0f}:color={c}:t=fill")
        filters += [box(level, 0, 1), box("gray", 0.25, 0.2)]
    if has("size"):
        part = rng.uniform(0.25, 0.5)
        width, height = width * part, height * part
    filters.append(f"scale={2 * round(width / 2)}:{2 * round(height / 2)},setsar=1")
    if has("crf"):
        crf = rng.randint(28, 35)
    return ",".join(filters), crf, begin, seconds


def make(args):
    rng = random.Random(args.seed)
    os.makedirs(args.out, exist_ok=True)
    path = lambda name: os.path.join(args.out, name + ".mp4")
    todo = list(originals(rng, args.videos))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for job in [pool.submit(ffmpeg, inputs, graph, path(name), options=["-t", str(SECONDS)])
                    for name, inputs, graph in todo]:
            job.result()
        truth, jobs = {}, []
        for name, _, _ in todo:
            truth[name] = {"of": name, "kind": "original", "begin": 0}
            up, down = probe(path(name), "stream=r_frame_rate")[0].split("/")
            for kind, number in [(kind, i) for kind in KINDS for i in range(COPIES.get(kind, 1))]:
                filters, crf, begin, seconds = copy_of(rng, kind, int(up) / int(down))
                copy = f"{name}-{kind}" + (f"{number}" if kind in COPIES else "")
                truth[copy] = {"of": name, "kind": kind, "begin": begin, "how": f"{filters} crf {crf}",
                               "moving": moving(path(name), begin, seconds)}
                jobs.append(pool.submit(ffmpeg, ["-ss", f"{begin:.3f}", "-t", f"{seconds:.3f}", "-i", path(name)],
                                        f"[0:v]{filters}[out]", path(copy), crf))
        for job in jobs:
            job.result()
    with open(os.path.join(args.out, "truth.json"), "w", encoding="utf-8") as file:
        json.dump(truth, file, indent=1)


def score(args):
    with open(os.path.join(args.videos, "truth.json"), encoding="utf-8") as file:
        truth = json.load(file)
    found, wrong, misplaced = set(), [], []
    pairs = os.path.join(args.found, "duplicates.jsonl")
    for line in open(pairs, encoding="utf-8") if os.path.exists(pairs) else []:
        pair = json.loads(line)
        first, second = [os.path.basename(pair[side])[:-4] for side in ("first", "second")]
        if truth[first]["of"] != truth[second]["of"]:
            wrong.append((first, second, pair["score"], pair["second_end"] - pair["second_begin"]))
            continue
        offset = pair["first_begin"] + truth[first]["begin"] - pair["second_begin"] - truth[second]["begin"]
        if abs(offset) > 0.5:
            misplaced.append((first, second, round(offset, 2), pair["score"]))
        else:
            found.add((first, second))
    kind_of = lambda name: truth[name]["kind"]
    missed = []
    print("| copies | planted | found | recall | pairs with a video of which it is no copy | precision |")
    print("|---|--:|--:|--:|--:|--:|")
    all_of = [0, 0, len({(a, b) for a, b, _, _ in wrong})]
    for kind in KINDS:
        copies = [name for name in truth if kind_of(name) == kind]
        hits = [n for n in copies if (truth[n]["of"], n) in found or (n, truth[n]["of"]) in found]
        missed += sorted(set(copies) - set(hits))
        bad = len({(a, b) for a, b, _, _ in wrong if kind in (kind_of(a), kind_of(b))})
        row(kind, len(copies), len(hits), bad)
        still = [n for n in copies if truth[n]["moving"] < STILL]
        if still:
            print(f"| {kind}, something moves | {len(copies) - len(still)} | {len(set(hits) - set(still))} "
                  f"| {len(set(hits) - set(still)) / max(1, len(copies) - len(still)):.3f} | | |")
            print(f"| {kind}, nothing moves | {len(still)} | {len(set(hits) & set(still))} "
                  f"| {len(set(hits) & set(still)) / len(still):.3f} | | |")
        all_of[0] += len(copies)
        all_of[1] += len(hits)
    bad = len({(a, b) for a, b, _, _ in wrong if kind_of(a) == kind_of(b) == "original"})
    print(f"| originals among each other | | | | {bad} | |")
    row("all pairs", *all_of)
    names = [name for name in truth if kind_of(name) == "original"]
    user, system = open(args.time, encoding="utf-8").read().split()[-2:]
    print(f"\n{len(truth)} videos, {len(names)} of them originals; {len(found)} pairs of the same original found, "
          f"{len(misplaced)} at another time than planted; {float(user) + float(system):.1f} s of processor time.")
    for title, those in (("missed", missed), ("wrong", wrong), ("at another time", misplaced)):
        for one in those if args.verbose else []:
            print(title, one, truth[one]["how"] if isinstance(one, str) else "")


def row(kind, planted, hits, bad):
    precision = hits / (hits + bad) if hits + bad else 1
    print(f"| {kind} | {planted} | {hits} | {hits / max(1, planted):.3f} | {bad} | {precision:.3f} |")


def main():
    parser = argparse.ArgumentParser()
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("make")
    step.add_argument("--seed", required=True)
    step.add_argument("--out", required=True)
    step.add_argument("--jobs", type=int, default=os.cpu_count())
    step.add_argument("videos", nargs="*")
    step.set_defaults(run=make)
    step = steps.add_parser("score")
    for name in ("--videos", "--found", "--time"):
        step.add_argument(name, required=True)
    step.add_argument("--verbose", action="store_true")
    step.set_defaults(run=score)
    args = parser.parse_args()
    args.run(args)


main()
