#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes videos of two shots whose sound goes on or breaks, for tests/bench/stitch_sound.sh.

  stitch_sound_make.py --seed N --each N --shots SHOTS.jsonl --out DIR

SHOTS.jsonl is what `vfm-clip shots` says of the videos that shots are taken from. A video is two
pieces of them with one change between, and a sound of its own: room tones (noise through filters, some with
hum), speech (FFmpeg's flite reads a text), and music (the sound of the given videos that have one, and made
chords). Pictures that look alike are of one shot, the later ones often nearer, or with some frames of one colour between.
DIR/truth.json lists each video with its class, the frames [begin, end) of the change, and whether it should be
joined.
The standard library and the program ffmpeg, with flite, are all it needs.
"""
import argparse
import array
import concurrent.futures
import json
import math
import os
import random
import subprocess

RATE = 48000  # of the sound as it is put together
FPS = 25
TEXT = ("The old harbour lies in the north of the city. Ships came here from all over the world, and with them "
        "came spices, cloth and news. Today only a few boats are left. The rest are in the museum, where children "
        "climb on them all day long. Do you know what it costs? Nobody does, and nobody asks.")
VOICES = ("kal16", "slt", "awb", "rms")

# Class: pictures that look alike (the same shot, later) or other ones; the sound; whether to join.
CLASSES = {
    "jump cut, room tone": ("alike", "tone", True),
    "jump cut, speech, one room": ("alike", "speech", True),
    "jump cut, speech runs through": ("alike", "speech runs", True),
    "jump cut, music runs through": ("alike", "music runs", True),
    "jump cut, silence": ("alike", "silence", True),
    "other take, other room tone": ("alike", "tones", False),
    "other take, speech, other room": ("alike", "speeches", False),
    "other take, L or J cut": ("alike", "late", False),
    "other take, cross-fade of sound": ("alike", "fade", False),
    "other take, other music": ("alike", "musics", False),
    "other take, sound against silence": ("alike", "half", False),
    "other picture, music runs through": ("other", "music runs", False),
    "other picture, speech runs through": ("other", "speech runs", False),
    "other picture, one room tone": ("other", "tone", False),
    "other picture, other sound": ("other", "tones", False),
}
# Codec, container, rates, channels.
FORMATS = [("pcm_s16le", "mkv", (8000, 16000, 44100, 48000), (1, 2, 6)), ("aac", "mp4", (16000, 22050, 44100, 48000), (1, 2, 6)),
           ("libmp3lame", "mkv", (16000, 24000, 44100, 48000), (1, 2)), ("ac3", "mkv", (32000, 48000), (2, 6)),
           ("libopus", "mkv", (48000,), (1, 2)), ("flac", "mkv", (8000, 11025, 48000), (1, 2)), ("aac", "ts", (44100, 48000), (2,))]


def ffmpeg(*args):
    return subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *args], check=True, stdout=subprocess.PIPE).stdout


def heard(*args):
    """Sound as FFmpeg makes it, one channel."""
    samples = array.array("f")
    samples.frombytes(ffmpeg(*args, "-vn", "-ar", str(RATE), "-ac", "1", "-f", "f32le", "-"))
    return samples


def decibels(samples):
    return 10 * math.log10(sum(x * x for x in samples) / max(1, len(samples)) + 1e-12)


def at_level(samples, level):
    gain = 10 ** ((level - decibels(samples)) / 20)
    return array.array("f", (x * gain for x in samples))


def added(a, b):
    return array.array("f", map(lambda x, y: x + y, a, b))


def room_tone(rng, seconds):
    color = rng.choice(("white", "pink", "brown", "velvet"))
    filters = [f"anoisesrc=r={RATE}:d={seconds}:c={color}:seed={rng.randrange(1 << 31)}"]
    if rng.random() < 0.7:
        filters.append(f"lowpass=f={rng.uniform(500, 8000):.0f}")
    if rng.random() < 0.5:
        filters.append(f"highpass=f={rng.uniform(80, 600):.0f}")
    for _ in range(rng.randrange(3)):
        filters.append(f"equalizer=f={rng.uniform(150, 5000):.0f}:t=o:w={rng.uniform(.3, 2):.2f}:g={rng.uniform(-10, 10):.1f}")
    tone = heard("-f", "lavfi", "-i", ",".join(filters))
    if rng.random() < 0.4:
        hum, phase = 2 * math.pi * rng.choice((100, 120)) / RATE, rng.uniform(0, 6)
        share = 10 ** ((decibels(tone) + rng.uniform(-10, 3)) / 20)
        tone = array.array("f", (x + share * math.sin(hum * i + phase) for i, x in enumerate(tone)))
    return at_level(tone, rng.uniform(-58, -34))


def chords(rng, seconds):
    """Struck notes of one key."""
    key, beat = rng.uniform(80, 160), rng.uniform(0.2, 0.5)
    samples = array.array("f", bytes(4 * int(seconds * RATE)))
    decay = rng.uniform(2, 8)
    overtones = rng.randrange(2, 7)
    for step in range(int(seconds / beat)):
        for _ in range(rng.randrange(1, 4)):
            pitch = key * 2 ** (rng.choice((0, 2, 4, 5, 7, 9, 11, 12, 14, 16, 19, 24)) / 12)
            turn = 2 * math.pi * pitch / RATE
            begin = int(step * beat * RATE)
            for i in range(min(int(beat * 1.5 * RATE), len(samples) - begin)):
                fall = math.exp(-decay * i / RATE)
                samples[begin + i] += fall * sum(math.sin(k * turn * i) / k for k in range(1, overtones))
    return at_level(samples, rng.uniform(-28, -16))


class Sounds:
    """All that sounds are cut from."""

    def __init__(self, rng, videos):
        self.voices = [at_level(heard("-f", "lavfi", "-i", f"flite=voice={v}:text='{TEXT}'"), -23) for v in VOICES]
        self.music = [m for m in map(self.of_video, videos) if m is not None]
        self.music += [chords(rng, 12) for _ in range(4)]

    @staticmethod
    def of_video(path):
        kinds = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "a", "-show_entries", "stream=index", "-of", "csv=p=0", path],
                               check=True, stdout=subprocess.PIPE).stdout.split()
        return heard("-i", path) if len(kinds) == 1 else None

    @staticmethod
    def piece(rng, samples, count):
        begin = rng.randrange(len(samples) - count)
        return samples[begin:begin + count]

    def two_musics(self, rng, count):
        a, b = rng.sample(range(len(self.music)), 2)
        return self.piece(rng, self.music[a], count), self.piece(rng, self.music[b], count)

    def pair(self, rng, kind, count):
        """What is heard before the change, and after it: each over the whole video."""
        tone = lambda: room_tone(rng, count / RATE + 0.1)[:count]
        voice = rng.choice(self.voices)
        speech = lambda: self.piece(rng, voice, count)
        if kind == "silence":
            return [array.array("f", bytes(4 * count))] * 2
        if kind == "music runs":
            return [self.piece(rng, rng.choice(self.music), count)] * 2
        if kind == "musics":
            return self.two_musics(rng, count)
        if kind == "half":
            pair = [rng.choice((tone(), added(tone(), speech()))), array.array("f", bytes(4 * count))]
            rng.shuffle(pair)
            return pair
        if kind == "tone":
            return [tone()] * 2
        if kind == "speech runs":
            return [added(tone(), speech())] * 2
        if kind == "speech":
            room = tone()
            return added(room, speech()), added(room, speech())
        if kind == "speeches" or (kind in ("late", "fade") and rng.random() < 0.5):
            return added(tone(), speech()), added(tone(), speech())
        return tone(), tone()


def switched(before, after, at, fade):
    """From one to the other at a sample, over so many."""
    out = before[:at - fade // 2]
    for i in range(fade):
        k = at - fade // 2 + i
        out.append(before[k] + (after[k] - before[k]) * i / fade)
    return out + after[len(out):]


def piece_of(shot, rng, count, begin=None):
    if begin is None:
        begin = rng.randrange(shot["begin"], shot["end"] - count)
    return {"path": shot["path"], "begin": begin, "end": begin + count}


def pictures(rng, shots, alike, counts):
    """Two pieces: of one shot, the second one later, and often nearer; or of two."""
    if not alike:
        a, b = rng.sample(shots, 2)
        return piece_of(a, rng, counts[0]), piece_of(b, rng, counts[1]), None
    skip = rng.randrange(8, 100)
    need = sum(counts) + skip
    fit = [s for s in shots if s["end"] - s["begin"] > need]
    while not fit:
        skip //= 2
        need = sum(counts) + skip
        fit = [s for s in shots if s["end"] - s["begin"] > need]
    shot = rng.choice(fit)
    a = piece_of(shot, rng, need)
    a["end"] = a["begin"] + counts[0]
    b = piece_of(shot, rng, counts[1], a["end"] + skip)
    nearer = rng.uniform(1.05, 1.4) if rng.random() < 0.8 else None
    return a, b, nearer


def make(job):
    rng = random.Random(job["seed"])
    looks, kind, join = CLASSES[job["class"]]
    counts = [rng.randrange(30, 60), rng.randrange(30, 60)]
    a, b, nearer = pictures(rng, job["shots"], looks == "alike", counts)
    dip = rng.randrange(9, 13) if looks == "alike" and rng.random() < 0.5 else 0
    length = (sum(counts) + dip) * RATE // FPS
    before, after = job["sounds"].pair(rng, kind, length)
    at, fade = (2 * counts[0] + dip) * RATE // FPS // 2, 0
    if kind == "late":
        at += rng.choice((-1, 1)) * rng.randrange(RATE // FPS, 6 * RATE // FPS)
    if kind == "fade":
        fade = rng.randrange(RATE // 10, RATE // 2)
    sound = switched(before, after, at, fade)
    codec, container, rates, channels = rng.choice(FORMATS)
    path = f"{job['path']}.{container}"
    raw = job["path"] + ".f32"
    with open(raw, "wb") as file:
        file.write(sound.tobytes())
    crop = f"crop=iw/{nearer:.3f}:ih/{nearer:.3f}," if nearer else ""
    trim = lambda p: f"trim=start_frame={p['begin']}:end_frame={p['end']},setpts=N/{FPS}/TB"
    tail = "scale=320:180,setsar=1,format=yuv420p"
    between = f"[a][b]concat=n=2:v=1,setpts=N/{FPS}/TB,fps={FPS}[v]"
    if dip:
        color = rng.choice(("black", "white", "gray"))
        between = (f"color={color}:s=320x180:r={FPS},trim=end_frame={dip},setsar=1,format=yuv420p[c];"
                   f"[a][c][b]concat=n=3:v=1,setpts=N/{FPS}/TB,fps={FPS}[v]")
    offset = rng.choice((0, 0, 0.02, 0.1, -0.05))
    ffmpeg("-i", a["path"], "-i", b["path"], "-itsoffset", str(offset), "-f", "f32le", "-ar", str(RATE), "-ac", "1", "-ss",
           str(max(0, offset)), "-i", raw, "-filter_complex",
           f"[0:v:0]{trim(a)},{tail}[a];[1:v:0]{trim(b)},{crop}{tail}[b];{between}",
           "-map", "[v]", "-map", "2:a", "-r", str(FPS), "-c:v", "libx264", "-preset", "ultrafast", "-crf", "20", "-threads", "1",
           "-c:a", codec, "-ar", str(rng.choice(rates)), "-ac", str(rng.choice(channels)), "-strict", "-2", path)
    os.remove(raw)
    return {"file": os.path.basename(path), "class": job["class"], "begin": counts[0],
            "end": counts[0] + dip + 1, "join": join}


def shots_of(lines):
    shots = []
    for line in lines:
        video = json.loads(line)
        if video["kind"] != "shots":
            continue
        frames = [0] + [c["frame"] for c in video["cuts"]] + [video["frames"]]
        for begin, end in zip(frames, frames[1:]):
            if end - begin >= 70:  # a few frames at each end may be of a gradual change
                shots.append({"path": video["path"], "begin": begin + 4, "end": end - 4})
    return shots


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", required=True)
    parser.add_argument("--each", type=int, required=True)
    parser.add_argument("--shots", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    with open(args.shots, encoding="utf-8") as file:
        shots = shots_of(file)
    os.makedirs(args.out, exist_ok=True)
    sounds = Sounds(random.Random(args.seed), sorted({s["path"] for s in shots}))
    jobs = [{"seed": f"{args.seed} {name} {i}", "class": name, "shots": shots, "sounds": sounds,
             "path": os.path.join(args.out, f"{number:02}-{i:03}")}
            for number, name in enumerate(CLASSES) for i in range(args.each)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        truth = list(pool.map(make, jobs))
    with open(os.path.join(args.out, "truth.json"), "w", encoding="utf-8") as file:
        json.dump(truth, file, indent=1)


if __name__ == "__main__":
    main()
