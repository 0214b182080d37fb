// SPDX-License-Identifier: Apache-2.0
#include "media/container/y4m.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "media/libav.h"

namespace vfm::media {

struct Y4mWriter::State {
  Sink sink;
  Frame shape;  // Of the frames written, without planes.
  Rational frame_rate;
  FrameExporter exporter;
  bool started = false;
  std::string bytes;
};

Y4mWriter::Y4mWriter(Sink sink, int width, int height, Rational frame_rate, Y4mChroma chroma)
    : state_(std::make_unique<State>()) {
  if (width <= 0 || height <= 0) fail("cannot write video of {}x{}", width, height);
  if (frame_rate.num <= 0 || frame_rate.den <= 0)
    fail("cannot write video at {}/{} frames a second", frame_rate.num, frame_rate.den);
  State& s = *state_;
  s.sink = std::move(sink);
  s.frame_rate = frame_rate;
  s.shape.layout = chroma == Y4mChroma::yuv444 ? PixelLayout::yuv444 : PixelLayout::yuv420;
  s.shape.width = width;
  s.shape.height = height;
  s.exporter = FrameExporter(s.shape, to_av(s.shape.layout), width, height, Siting::center);
}

Y4mWriter::~Y4mWriter() = default;
Y4mWriter::Y4mWriter(Y4mWriter&&) noexcept = default;

void Y4mWriter::add(const RgbImage& image) {
  State& s = *state_;
  if (image.width != s.shape.width || image.height != s.shape.height)
    fail("an image of {}x{} does not fit in video of {}x{}", image.width, image.height,
         s.shape.width, s.shape.height);
  s.bytes.clear();
  if (!std::exchange(s.started, true))
    s.bytes = fmt::format("YUV4MPEG2 W{} H{} F{}:{} Ip A1:1 {} XCOLORRANGE=LIMITED\n",
                          s.shape.width, s.shape.height, s.frame_rate.num, s.frame_rate.den,
                          s.shape.layout == PixelLayout::yuv444 ? "C444" : "C420jpeg");
  s.bytes += "FRAME\n";
  const AvFramePtr av = s.exporter.fit(to_frame(image));
  for (int p = 0; p < 3; ++p)
    for (int y = 0; y < plane_rows(s.shape, p); ++y)
      s.bytes.append(reinterpret_cast<const char*>(av->data[p]) +
                         static_cast<std::ptrdiff_t>(y) * av->linesize[p],
                     static_cast<std::size_t>(plane_row_bytes(s.shape, p)));
  s.sink(s.bytes);
}

}  // namespace vfm::media
