# Reads each clip by PyAV, OpenCV, decord and torchcodec, from its begin and after seeks, and compares the frames with
# those that PyAV's decoder gives one after the other. Usage: smart_readers.py SOURCE CLIP... A reader that cannot read
# SOURCE, an mp4 of the video that the clips were cut of, is left out. Status 1 if a frame differs.
# SPDX-License-Identifier: Apache-2.0
import os
import sys

os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
import av
import cv2
import decord
import numpy as np
from torchcodec.decoders import VideoDecoder

NEAR = 3  # levels of 255: readers round YUV to RGB in their own ways

faults = 0


def fault(path, reader, what):
    global faults
    faults += 1
    print(f"{path}: {reader}: {what}")


def by_opencv(path, places):
    video = cv2.VideoCapture(path)
    frames = []
    while True:
        good, frame = video.read()
        if not good:
            break
        frames.append(frame[:, :, ::-1])
    sought = []
    for place in places:
        video.set(cv2.CAP_PROP_POS_FRAMES, place)
        sought.append(video.read()[1][:, :, ::-1])
    return frames, sought


def by_decord(path, places):
    video = decord.VideoReader(path)
    frames = list(video.get_batch(range(len(video))).asnumpy())
    video = decord.VideoReader(path)
    return frames, [video[place].asnumpy() for place in places]


def by_torchcodec(mode):
    def read(path, places):
        video = VideoDecoder(path, seek_mode=mode, dimension_order="NHWC")
        frames = list(video.get_frames_in_range(0, len(video)).data.numpy())
        return frames, [video[place].numpy() for place in places]

    return read


READERS = {
    "OpenCV": by_opencv,
    "decord": by_decord,
    "torchcodec": by_torchcodec("exact"),
    "torchcodec, approximate": by_torchcodec("approximate"),
}


def reads(reader, path):
    try:
        return len(reader(path, [])[0]) > 0
    except Exception:
        return False


def seek_by_pyav(path, pts):
    with av.open(path) as video:
        video.seek(pts, stream=video.streams.video[0])
        for frame in video.decode(video=0):
            if frame.pts >= pts:
                return frame.to_ndarray(format="rgb24")


def check(path, name, got, want):
    if len(got) != len(want):
        return fault(path, name, f"{len(got)} frames, not {len(want)}")
    for place, (a, b) in enumerate(zip(got, want)):
        apart = int(np.abs(a.astype(int) - b.astype(int)).max())
        if apart > NEAR:
            return fault(path, name, f"frame {place} is another one (by {apart} levels)")


def main():
    source, clips = sys.argv[1], sys.argv[2:]
    readers = {name: reader for name, reader in READERS.items() if reads(reader, source)}
    for path in clips:
        with av.open(path) as video:
            decoded = list(video.decode(video=0))
        frames = [frame.to_ndarray(format="rgb24") for frame in decoded]
        places = sorted({len(frames) - 1, len(frames) // 2, len(frames) // 3, 0}, reverse=True)
        wanted = [frames[place] for place in places]
        check(path, "PyAV after a seek", [seek_by_pyav(path, decoded[p].pts) for p in places], wanted)
        for name, reader in readers.items():
            try:
                got, sought = reader(path, places)
            except Exception as error:
                fault(path, name, error)
                continue
            check(path, name, got, frames)
            check(path, name + " after a seek", sought, wanted)
    left = ", ".join(name for name in READERS if name not in readers)
    print(f"{source}: {len(clips)} clips, {faults} faults" + (f"; not read by {left}" if left else ""))
    return faults > 0


sys.exit(main())
