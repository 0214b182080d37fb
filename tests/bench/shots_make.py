#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes videos whose changes of shot are known, for tests/bench/shots.sh.

  shots_make.py --seed N --out DIR [--photo FILE]... [--clip FILE[:BEGIN-END]]...

Shots come from FFmpeg's drawn sources, from moving views of photographs (--photo) and from clips that
hold one shot each (--clip; frames BEGIN to END of the file). What joins them is computed here, frame by
frame, so the truth is exact: DIR/truth.json lists for each video its class, its changes
{"kind", "begin", "end"} (frames [begin, end) of a gradual change show both shots or none; of a cut
begin is the first frame of the new shot and end is begin + 1), and how many events it holds that are no
changes. The standard library and the program ffmpeg are all it needs.
"""
import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import tempfile

WIDTH, HEIGHT = 320, 180
LUMA, CHROMA = WIDTH * HEIGHT, WIDTH * HEIGHT // 4
BYTES = LUMA + 2 * CHROMA
EVEN = int.from_bytes(b"\xff\x00" * (BYTES // 2), "little")
HALF = int.from_bytes(b"\x80\x00" * (BYTES // 2), "little")


def plain(y, u=128, v=128):
    return bytes([y]) * LUMA + bytes([u]) * CHROMA + bytes([v]) * CHROMA


BLACK, WHITE = plain(16), plain(235)


def mix(a, b, share):
    """share of b, the rest of a: all bytes at once, two sets of 16-bit lanes in one long integer."""
    w = max(0, min(256, round(256 * share)))
    if w in (0, 256):
        return b if w else a
    p, q = int.from_bytes(a, "little"), int.from_bytes(b, "little")
    even = ((p & EVEN) * (256 - w) + (q & EVEN) * w + HALF) >> 8 & EVEN
    odd = ((p >> 8 & EVEN) * (256 - w) + (q >> 8 & EVEN) * w + HALF) >> 8 & EVEN
    return (even | odd << 8).to_bytes(BYTES, "little")


def planes(frame):
    yield 0, WIDTH, HEIGHT
    yield LUMA, WIDTH // 2, HEIGHT // 2
    yield LUMA + CHROMA, WIDTH // 2, HEIGHT // 2


def paste(frame, top, left, height, width, source):
    """Frame with a box of `source` (a frame, or three values of a colour) laid over it."""
    out = bytearray(frame)
    for k, (at, w, h) in enumerate(planes(frame)):
        scale = WIDTH // w
        x0, x1 = left // scale, min(w, (left + width) // scale)
        for y in range(top // scale, min(h, (top + height) // scale)):
            row = at + y * w
            out[row + x0:row + x1] = (source[row + x0:row + x1] if isinstance(source, bytes)
                                      else bytes([source[k]]) * (x1 - x0))
    return bytes(out)


def ffmpeg(*arguments, **options):
    return subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", "-threads", "1", *arguments],
                          check=True, **options)


def read(frames, *inputs, filters="null"):
    """Frames as yuv420p of the size here. A source that ends early has its last frame held."""
    data = ffmpeg(*inputs, "-vf", f"{filters},scale={WIDTH}:{HEIGHT},format=yuv420p", "-frames:v",
                  str(frames), "-vsync", "0", "-f", "rawvideo", "-", stdout=subprocess.PIPE).stdout
    out = [data[i:i + BYTES] for i in range(0, len(data) - BYTES + 1, BYTES)]
    if not out:
        raise SystemExit(f"no frames from {inputs}")
    return out + [out[-1]] * (frames - len(out))


class Material:
    """Where shots come from. `taken` keeps two neighbouring shots from being of one thing."""

    def __init__(self, photos, clips, random_):
        self.photos, self.clips, self.random, self.taken = photos, clips, random_, None

    def choose(self, things):
        thing = self.random.choice([t for t in things if t != self.taken] or things)
        self.taken = thing
        return thing

    def view(self, photo, frames, fps, speed):
        """A camera over a photograph: pans or zooms at `speed` widths of the picture a second."""
        r = self.random
        zoom, angle_x, angle_y = r.uniform(1.8, 3.2), r.uniform(-1, 1), r.uniform(-0.6, 0.6)
        way = min(speed * frames / fps, (zoom - 1) * 0.95)  # in widths of the view
        x0 = r.uniform(0, max(0, (1 - 1 / zoom) - abs(angle_x) * way / zoom))
        y0 = r.uniform(0, max(0, (1 - 1 / zoom) - abs(angle_y) * way / zoom))
        at = f"on/{max(frames - 1, 1)}"

        def travel(start, angle):
            span = abs(angle) * way / zoom
            return f"({start}+{span}*{at if angle > 0 else f'(1-{at})'})"
        if r.random() < 0.3:  # a zoom
            grow = min(1 + speed * frames / fps, 1.9)
            z = f"{zoom}*pow({grow},{at})" if r.random() < 0.5 else f"{zoom}*pow({grow},1-{at})"
            x, y = "iw/2-(iw/zoom/2)", "ih/2-(ih/zoom/2)"
        else:
            z, x, y = str(zoom), f"iw*{travel(x0, angle_x)}", f"ih*{travel(y0, angle_y)}"
        return read(frames, "-i", photo, filters=(
            f"zoompan=z='{z}':x='{x}':y='{y}':d={frames}:s={WIDTH}x{HEIGHT}:fps={fps}"))

    def drawn(self, frames, fps):
        r = self.random
        size = f"size={WIDTH}x{HEIGHT}:rate={fps}"

        def colour():
            return f"0x{r.randrange(1 << 24):06x}"
        name = self.choose(["testsrc2", "mandelbrot", "gradients", "life", "sierpinski", "cells"])
        source = {
            "testsrc2": f"testsrc2={size}",
            "mandelbrot": f"mandelbrot={size}:start_scale={r.uniform(0.5, 3)}:"
                          f"start_x={r.uniform(-1, 0)}:start_y={r.uniform(-0.8, 0.8)}",
            "gradients": f"gradients={size}:c0={colour()}:c1={colour()}:c2={colour()}:nb_colors=3:"
                         f"speed={r.uniform(0.002, 0.02)}:seed={r.randrange(9999)}",
            "life": f"life=size=80x45:rate={fps}:seed={r.randrange(9999)}:mold=20:"
                    f"life_color={colour()}:death_color={colour()}:ratio=0.2",
            "sierpinski": f"sierpinski={size}:seed={r.randrange(9999)}:type="
                          f"{r.choice(['carpet', 'triangle'])}:jump={r.randrange(2, 20)}",
            "cells": f"cellauto=size=320x180:rate={fps}:rule={r.choice([18, 22, 30, 110, 150])}:"
                     f"seed={r.randrange(9999)}:scroll=1",
        }[name]
        # Not all alike: part of it, other colours, light.
        zoom = r.uniform(1, 2.5)
        look = (f"crop=iw/{zoom}:ih/{zoom},hue=h={r.randrange(360)}:s={r.uniform(0.3, 1.2)},"
                f"eq=brightness={r.uniform(-0.2, 0.15)}:contrast={r.uniform(0.6, 1.1)}"
                f"{',hflip' if r.random() < 0.5 else ''}")
        return read(frames, "-f", "lavfi", "-ss", f"{r.uniform(0, 5):.3f}", "-i", source,
                    filters=look)

    def shot(self, frames, fps=24, still=False):
        r = self.random
        kinds = ["drawn"] + ["photo"] * 2 * bool(self.photos) + ["clip"] * 2 * bool(self.clips)
        kind = r.choice(kinds)
        if still:
            one = self.shot(1, fps)[0]
            return [one] * frames
        if kind == "photo":
            return self.view(self.choose(self.photos), frames, fps,
                             r.choice([0.02, 0.05, 0.1, 0.2, 0.4]))
        if kind == "clip":
            name = self.choose(self.clips)
            there = os.path.getsize(name) // BYTES
            if there >= frames:
                with open(name, "rb") as raw:
                    raw.seek(r.randrange(there - frames + 1) * BYTES)
                    return [raw.read(BYTES) for _ in range(frames)]
        return self.drawn(frames, fps)

    def still_picture(self):
        if self.photos:
            return self.choose(self.photos)
        return None


class Film:
    """Frames that are joined, and the truth about them."""

    def __init__(self, material, fps=24):
        self.material, self.fps, self.frames, self.changes, self.events = material, fps, [], [], 0

    def shot(self, frames, still=False):
        return self.material.shot(frames, self.fps, still)

    def change(self, kind, begin, end=None):
        self.changes.append({"kind": kind, "begin": begin, "end": end or begin + 1})

    def cut(self, frames):
        if self.frames:
            self.change("cut", len(self.frames))
        self.frames += frames

    def dissolve(self, frames, length):
        """The last `length` frames become the first of `frames`, both going on."""
        begin = len(self.frames) - length
        for i in range(length):
            self.frames[begin + i] = mix(self.frames[begin + i], frames[i], (i + 1) / (length + 1))
        self.frames += frames[length:]
        self.change("dissolve", begin, begin + length)

    def wipe(self, frames, length, way):
        begin = len(self.frames) - length
        for i in range(length):
            share = (i + 1) / (length + 1)
            wide, high = round(share * WIDTH / 2) * 2, round(share * HEIGHT / 2) * 2
            box = {"left": (0, 0, HEIGHT, wide), "right": (0, WIDTH - wide, HEIGHT, wide),
                   "down": (0, 0, high, WIDTH), "up": (HEIGHT - high, 0, high, WIDTH)}[way]
            self.frames[begin + i] = paste(self.frames[begin + i], *box, frames[i])
        self.frames += frames[length:]
        self.change("wipe", begin, begin + length)

    def xfade(self, frames, length, name):
        """As wipe(), by FFmpeg's filter of that name: its first frame is wholly the old shot's."""
        begin = len(self.frames) - length
        with tempfile.TemporaryDirectory() as folder:
            inputs = []
            for k, part in enumerate((self.frames[begin:], frames[:length])):
                inputs.append(os.path.join(folder, f"{k}.yuv"))
                with open(inputs[-1], "wb") as raw:
                    raw.write(b"".join(part))
            given = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{WIDTH}x{HEIGHT}", "-r", "25"]
            data = ffmpeg(*given, "-i", inputs[0], *given, "-i", inputs[1], "-filter_complex",
                          f"xfade=transition={name}:duration={length / 25}:offset=0,format=yuv420p",
                          "-frames:v", str(length), "-vsync", "0", "-f", "rawvideo", "-",
                          stdout=subprocess.PIPE).stdout
        if len(data) != length * BYTES:
            raise SystemExit(f"xfade={name} made {len(data) / BYTES} frames for {length}")
        for i in range(1, length):
            self.frames[begin + i] = data[i * BYTES:(i + 1) * BYTES]
        self.frames += frames[length:]
        self.change(name, begin + 1, begin + length)

    def fade(self, frames, out, hold, back, colour):
        begin = len(self.frames) - out
        for i in range(out):
            self.frames[begin + i] = mix(self.frames[begin + i], colour, (i + 1) / out)
        self.frames += [colour] * hold
        frames = list(frames)
        for i in range(back):
            frames[i] = mix(colour, frames[i], (i + 1) / (back + 1))
        self.frames += frames
        self.change("fade", begin, begin + out + hold + back)


def cuts(film, r):
    for _ in range(9):
        film.cut(film.shot(r.randrange(24, 60)))


def rapid(film, r):
    for _ in range(18):
        film.cut(film.shot(r.randrange(5, 13)))


def dissolves(low, high):
    def make(film, r):
        film.cut(film.shot(70 + high))
        for _ in range(6):
            film.dissolve(film.shot(2 * high + r.randrange(20, 50)), r.randrange(low, high + 1))
    return make


def fades(colour):
    def make(film, r):
        film.cut(film.shot(60))
        for _ in range(6):
            film.fade(film.shot(r.randrange(55, 80)), r.randrange(6, 25), r.randrange(0, 20),
                      r.randrange(6, 25), colour)
    return make


def near_fades(film, r):
    film.cut(film.shot(40))
    for _ in range(4):
        film.cut(film.shot(r.randrange(12, 40)))
        back, hold = r.randrange(4, 16), r.randrange(1, 12)
        if r.random() < 0.4:  # a cut into black, too
            film.change("cut", len(film.frames))
            out, hold = 0, hold + 12
        else:
            out = r.randrange(4, min(16, 1 + len(film.frames) - film.changes[-1]["begin"]))
        film.fade(film.shot(back + r.randrange(6, 20)), out, hold, back, BLACK)
        film.cut(film.shot(r.randrange(24, 40)))


def wipes(film, r):
    film.cut(film.shot(60))
    for _ in range(6):
        film.wipe(film.shot(r.randrange(80, 110)), r.randrange(8, 36),
                  r.choice(["left", "right", "up", "down"]))


def xfades(*names):
    def make(film, r):
        film.cut(film.shot(80))
        for _ in range(6):  # from half a second to two
            length = r.randrange(film.fps // 2, min(2 * film.fps, 60) + 1)
            film.xfade(film.shot(length + r.randrange(55, 80)), length, r.choice(names))
    return make


def letterbox(film, r):
    bar = r.choice([20, 24, 30])
    cuts(film, r)
    film.dissolve(film.shot(60), r.randrange(6, 20))
    film.frames = [paste(paste(f, 0, 0, bar, WIDTH, (16, 128, 128)), HEIGHT - bar, 0, bar, WIDTH,
                         (16, 128, 128)) for f in film.frames]


def glyphs(frame, r, top, left, columns, ink, size=2):
    """A line of something like letters, drawn in luma."""
    out = bytearray(frame)
    for k in range(columns):
        if r.random() < 0.15:
            continue
        for y in range(5):
            for x in range(3):
                if r.random() < 0.55:
                    for row in range(top + y * size, top + (y + 1) * size):
                        at = row * WIDTH + left + (4 * k + x) * size
                        out[at:at + size] = bytes([ink[0]]) * size
    return bytes(out)


def slides(film, r):
    for _ in range(9):
        ground = plain(r.choice([30, 200, 225, 235]), r.randrange(100, 156), r.randrange(100, 156))
        ink = (16, 128, 128) if ground[0] > 128 else (230, 128, 128)
        page = glyphs(ground, r, 14, 20, 20, ink, 3)
        for line in range(r.randrange(3, 8)):
            page = glyphs(page, r, 45 + 16 * line, 24, r.randrange(8, 32), ink)
        if r.random() < 0.5:
            page = paste(page, r.randrange(40, 90, 2), r.randrange(160, 200, 2), 70, 100,
                         film.shot(1)[0])
        film.cut([page] * r.randrange(20, 60))


def split_screen(film, r):
    for _ in range(7):
        n = r.randrange(24, 50)
        film.cut([paste(a, 0, WIDTH // 2, HEIGHT, WIDTH // 2, b)
                  for a, b in zip(film.shot(n), film.shot(n))])


def flashes(film, r):
    film.frames = film.shot(180)
    for begin in range(20, 160, 28):
        light = r.choice([WHITE, WHITE, plain(200, 120, 136)])
        at = begin + r.randrange(0, 8)
        for i in range(r.randrange(1, 4)):
            film.frames[at + i] = mix(film.frames[at + i], light, r.uniform(0.5, 1))
        film.events += 1


def explosions(film, r):
    film.frames = film.shot(200)
    for begin in range(20, 150, 40):
        at, keep = begin + r.randrange(0, 8), r.uniform(0.75, 0.9)
        fire = read(24, "-f", "lavfi", "-i",
                    f"gradients=size=320x180:rate=24:c0=0xfff0c0:c1=0xff9020:c2=0xffffff:nb_colors=3:"
                    f"speed=0.1:seed={r.randrange(9999)}")
        for i in range(24):
            share = 0.5 + 0.22 * i if i < 3 else 0.95 * keep ** (i - 2)
            film.frames[at + i] = mix(film.frames[at + i], fire[i], share)
        film.events += 1


def titles(film, r):
    film.frames = film.shot(200)
    for begin in range(16, 170, 30):
        at = begin + r.randrange(0, 6)
        lower = r.random() < 0.4
        top = 130 if lower else 150
        for i in range(20):
            f = film.frames[at + i]
            if lower:
                wide = min(WIDTH - 40, 60 * (i + 1))
                f = paste(f, top, 20, 34, wide, (40, 160, 100))
            words = random.Random(begin)
            f = glyphs(f, words, top + 8, 40, 26, (230, 128, 128))
            film.frames[at + i] = f
        film.events += 1


def grain(film, r):
    film.frames = film.shot(150)
    film.events = 1


def pan(film, r):
    photo = film.material.still_picture()
    film.frames = film.material.view(photo, 72, film.fps, r.choice(
        [0.02, 0.04, 0.08, 0.15, 0.3, 0.5, 0.8, 1.2]))
    film.events = 1


def whip(film, r):
    """Looks at one thing, swings to another within half a second, and looks on."""
    photo = film.material.still_picture()
    zoom, n = r.uniform(2.2, 4), r.randrange(8, 20)
    source = ["-i", photo] if photo else ["-f", "lavfi", "-i", "mandelbrot=size=1280x720"]
    way = f"(0.05+(0.9-1/{zoom})*(1-cos(PI*clip((on-30)/{n},0,1)))/2)"
    if r.random() < 0.5:
        way = f"(1-1/{zoom}-{way})"
    film.frames = read(80, *source, filters=(
        f"zoompan=z={zoom}:x='iw*{way}':y='ih*{r.uniform(0, 1 - 1 / zoom)}':d=80:"
        f"s={WIDTH}x{HEIGHT}:fps=24" + (",tmix=frames=2" if r.random() < 0.5 else "")))
    film.events = 1


def mixed(film, r):
    film.cut(film.shot(70))
    for _ in range(8):
        kind = r.randrange(4)
        if kind < 2:
            film.cut(film.shot(r.randrange(40, 80)))
        elif kind == 2:
            film.dissolve(film.shot(r.randrange(60, 90)), r.randrange(4, 30))
        else:
            film.fade(film.shot(r.randrange(60, 80)), r.randrange(6, 20), r.randrange(0, 10),
                      r.randrange(6, 20), BLACK)


# Class: how it is made, videos, rates, filter at the end. Changes come to more than 500, events to 400.
CLASSES = {
    "cuts": (cuts, 6, [24], None),
    "rapid": (rapid, 4, [24], None),
    "dissolves 2-10": (dissolves(2, 10), 4, [24], None),
    "dissolves 11-60": (dissolves(11, 60), 5, [24], None),
    "fades, black": (fades(BLACK), 4, [24], None),
    "fades, white": (fades(WHITE), 4, [24], None),
    "cuts near fades": (near_fades, 5, [24], None),
    "wipes": (wipes, 4, [24], None),
    "xfade slides": (xfades("slideleft", "slideright", "slideup", "slidedown"), 4, [24, 30], None),
    "xfade smooth": (xfades("smoothleft", "smoothright", "smoothup", "smoothdown"), 4, [24, 30], None),
    "xfade squeezes": (xfades("squeezeh", "squeezev"), 4, [24, 30], None),
    "xfade circles": (xfades("circleopen", "circleclose"), 4, [24, 30], None),
    "xfade crops": (xfades("circlecrop", "rectcrop"), 4, [24, 30], None),
    "xfade corners": (xfades("wipetl", "wipetr", "wipebl", "wipebr"), 4, [24, 30], None),
    "xfade diagonals": (xfades("diagtl", "diagtr", "diagbl", "diagbr"), 4, [24, 30], None),
    "xfade doors": (xfades("vertopen", "vertclose", "horzopen", "horzclose"), 4, [24, 30], None),
    "xfade radial": (xfades("radial"), 4, [24, 30], None),
    "xfade slices": (xfades("hlslice", "hrslice", "vuslice", "vdslice"), 4, [24, 30], None),
    "xfade others": (xfades("distance", "dissolve", "pixelize", "hblur", "fadegrays", "zoomin"), 4,
                     [24, 30], None),
    "letterbox": (letterbox, 4, [24], None),
    "slides": (slides, 4, [24], None),
    "split screen": (split_screen, 4, [24], None),
    "grain with cuts": (mixed, 4, [24], "noise=alls={grain}:allf=t"),
    "VFR": (mixed, 4, [24, 30], "vfr"),
    "10 to 60 fps": (mixed, 8, [10, 15, 50, 60], None),
    "flashes": (flashes, 10, [24, 30], None),
    "explosions": (explosions, 8, [24], None),
    "titles": (titles, 8, [24], None),
    "grain": (grain, 40, [24], "noise=alls={grain}:allf=t"),
    "whip pans": (whip, 40, [24], None),
    "pans and zooms": (pan, 200, [24, 30, 60], None),
}


def make_video(seed, name, number, arguments):
    r = random.Random(f"{seed}/{name}/{number}")
    make, _, rates, filters = CLASSES[name]
    fps = rates[number % len(rates)]
    film = Film(Material(arguments.photo, arguments.clips, r), fps)
    make(film, r)
    file = f"{name.replace(' ', '-').replace(',', '')}-{number:03}.mkv"
    chain = (filters or "null").replace("{grain}", str(r.choice([15, 25, 40])))
    if filters == "vfr":  # every frame is kept; the time between two is half to three halves
        chain = "settb=1/90000,setpts='(N+0.45*sin(N*2.3))*90000/%d'" % fps
    ffmpeg("-y", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{WIDTH}x{HEIGHT}", "-r", str(fps),
           "-i", "-", "-vf", chain, "-vsync", "0", "-c:v", "libx264", "-preset", "veryfast", "-crf",
           str(r.choice([18, 21, 24])), "-g", "250", os.path.join(arguments.out, file),
           input=b"".join(film.frames))
    return {"file": file, "class": name, "fps": fps, "frames": len(film.frames),
            "changes": film.changes, "events": film.events}


def parse_clip(text):
    name, _, span = text.rpartition(":")
    begin, _, end = span.partition("-")
    if not (name and begin.isdigit() and end.isdigit()):
        raise argparse.ArgumentTypeError(f"'{text}' is not FILE:BEGIN-END")
    return name, int(begin), int(end)


def shrink(photos, folder):
    """Photographs as JPEG of 1280 x 720: what large ones cost is paid once."""
    small = []
    for k, photo in enumerate(photos):
        small.append(os.path.join(folder, f"photo-{k}.jpg"))
        ffmpeg("-y", "-i", photo, "-vf", "scale=1280:720:force_original_aspect_ratio=increase,"
               "crop=1280:720,format=yuvj420p", "-q:v", "2", "-frames:v", "1", small[-1])
    return small


def decode(clips, folder):
    """The frames of clips, small and raw, so that a shot is read from any frame on."""
    raw = []
    for k, (name, begin, end) in enumerate(clips):
        raw.append(os.path.join(folder, f"clip-{k}.yuv"))
        ffmpeg("-y", "-i", name, "-vf", f"select='between(n,{begin},{end - 1})',"
               f"scale={WIDTH}:{HEIGHT},format=yuv420p", "-vsync", "0", "-frames:v",
               str(end - begin), "-f", "rawvideo", raw[-1])
    return raw


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--photo", action="append", default=[])
    parser.add_argument("--clip", action="append", default=[], type=parse_clip, dest="clips")
    parser.add_argument("--share", type=float, default=1, help="of the videos of each class")
    parser.add_argument("--class", action="append", dest="classes", choices=CLASSES)
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    arguments.photo = shrink(arguments.photo, arguments.out)
    arguments.clips = decode(arguments.clips, arguments.out)
    todo = [(arguments.seed, name, number, arguments)
            for name in arguments.classes or CLASSES
            for number in range(max(1, round(arguments.share * CLASSES[name][1])))
            if arguments.photo or name != "pans and zooms"]
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        videos = list(pool.map(make_video, *zip(*todo)))
    for name in arguments.photo + arguments.clips:
        os.remove(name)
    with open(os.path.join(arguments.out, "truth.json"), "w", encoding="utf-8") as out:
        json.dump(videos, out, indent=1)


if __name__ == "__main__":
    main()
