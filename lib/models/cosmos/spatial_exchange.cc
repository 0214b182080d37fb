// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/spatial_exchange.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "ops/norm/frame_norm.h"
#include "tensor/device.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

using ops::ChunkSums;
using ops::kFrameNormChunks;

/// Pixels [begin, end) of each frame of `from` [T, pixels, C] to each frame of `to`, beginning at
/// its pixel `at`. Dimensions between the first and the last count as one.
void copy_pixels(const Tensor& from, std::int64_t begin, std::int64_t end, const Tensor& to,
                 std::int64_t at) {
  if (from.device() == Device::meta) return;
  const std::size_t pixel = static_cast<std::size_t>(from.size(-1)) * dtype_size(from.dtype());
  const auto place = [&](const Tensor& x, std::int64_t i) {
    return static_cast<std::byte*>(x.raw()) + static_cast<std::size_t>(i) * pixel;
  };
  const auto frame = [&](const Tensor& x) {
    return x.bytes() / static_cast<std::size_t>(x.size(0));
  };
  copy_rows(place(to, at), frame(to), place(from, begin), frame(from),
            static_cast<std::size_t>(end - begin) * pixel, from.size(0), from.device());
}

Tensor pixels_of(const Tensor& x, std::int64_t begin, std::int64_t end) {
  const Tensor some({x.size(0), 1, end - begin, x.size(3)}, x.dtype(), x.device());
  copy_pixels(x, begin, end, some, 0);
  return some;
}

/// Sums of each frame's stretches, behind them those of one stretch more, if there is one.
void put_sums(const Tensor& to, const std::vector<ChunkSums>& some,
              const std::vector<ChunkSums>& last, std::int64_t frames) {
  auto* at = static_cast<std::byte*>(to.raw());
  const auto add = [&](const std::vector<ChunkSums>& from, std::int64_t t) {
    const std::size_t count = from.size() / static_cast<std::size_t>(frames);
    std::memcpy(at, from.data() + static_cast<std::size_t>(t) * count, count * sizeof(ChunkSums));
    at += count * sizeof(ChunkSums);
  };
  for (std::int64_t t = 0; t < frames; ++t) {
    if (!some.empty()) add(some, t);
    if (!last.empty()) add(last, t);
  }
}

/// Those of frame t, of so many stretches.
void take_sums(const Tensor& from, std::int64_t t, std::int64_t count, ChunkSums* to) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(ChunkSums);
  if (bytes > 0)
    std::memcpy(to, static_cast<const std::byte*>(from.raw()) + static_cast<std::size_t>(t) * bytes,
                bytes);
}

Tensor with_rows(const Tensor& x, std::int64_t rows) {
  return Tensor({x.size(0), rows, x.size(2), x.size(3)}, x.dtype(), x.device());
}

}  // namespace

std::vector<std::int64_t> band_rows(std::int64_t rows, int bands) {
  std::vector<std::int64_t> begins;
  for (int i = 0; i <= bands; ++i)
    begins.push_back(rows * i / bands);
  return begins;
}

SpatialExchange::SpatialExchange(const RankLine& line, std::int64_t rows)
    : line_(line), rows_(band_rows(rows, line.size())) {
  if (rows < line.size()) fail("{} rows are not bands of {} ranks", rows, line.size());
}

/// Of a layer's x, whose rows are some for each latent row: those of the bands before `part`.
std::int64_t SpatialExchange::rows_above(int part, const Tensor& x) const {
  return begin(part) * x.size(1) / (end(this->part()) - begin(this->part()));
}

Tensor SpatialExchange::with_neighbours(const Tensor& x, bool above, std::int64_t rows) const {
  const std::int64_t width = rows * x.size(2), pixels = x.size(1) * x.size(2);
  const bool from_above = above && !first(), to_below = above && !last();
  const auto rows_if = [&](bool wanted) { return wanted ? with_rows(x, rows) : Tensor(); };
  const Tensor top = rows_if(from_above), bottom = rows_if(!last());
  const Tensor upper = first() ? Tensor() : pixels_of(x, 0, width);
  const Tensor lower = to_below ? pixels_of(x, pixels - width, pixels) : Tensor();
  dist::Transfer down = line_.step(to_below, part() + 1, lower, from_above, part() - 1, top);
  dist::Transfer up = line_.step(!first(), part() - 1, upper, !last(), part() + 1, bottom);
  const Tensor wide = with_rows(x, x.size(1) + (from_above ? rows : 0) + (last() ? 0 : rows));
  const std::int64_t at = from_above ? width : 0;
  copy_pixels(x, 0, pixels, wide, at);
  down.wait();
  up.wait();
  if (from_above) copy_pixels(top, 0, width, wide, 0);
  if (!last()) copy_pixels(bottom, 0, width, wide, at + pixels);
  return wide;
}

Tensor SpatialExchange::gather_rows(const Tensor& x) const {
  const Tensor all = with_rows(x, rows_above(parts(), x));
  const auto put = [&](int of, const Tensor& band) {
    copy_pixels(band, 0, band.size(1) * band.size(2), all, pixels_above(of, x));
  };
  put(part(), x);
  for (int apart = 1; apart < parts(); ++apart) {
    const int to = (part() + apart) % parts(), from = (part() + parts() - apart) % parts();
    const Tensor band = with_rows(x, rows_above(from + 1, x) - rows_above(from, x));
    line_.step(true, to, x, true, from, band).wait();
    put(from, band);
  }
  return all;
}

/// So many elements of each rank of the line, to all.
std::vector<Tensor> SpatialExchange::share(const Tensor& own,
                                           const std::vector<std::int64_t>& counts) const {
  std::vector<Tensor> all(counts.size());
  all[static_cast<std::size_t>(part())] = own;
  for (int apart = 1; apart < parts(); ++apart) {
    const int to = (part() + apart) % parts(), from = (part() + parts() - apart) % parts();
    const auto of = static_cast<std::size_t>(from);
    all[of] = Tensor({counts[of]}, own.dtype(), own.device());
    line_.step(own.elements() > 0, to, own, counts[of] > 0, from, all[of]).wait();
  }
  return all;
}

/// Who has which pixels of a frame of a layer, and adds up which stretches of them: those that
/// begin in its band.
class SpatialExchange::Stretches {
 public:
  Stretches(const SpatialExchange& bands, const Tensor& x) {
    for (int i = 0; i <= bands.parts(); ++i)
      pixels_.push_back(bands.pixels_above(i, x));
  }

  std::int64_t pixels() const { return pixels_.back(); }
  /// Pixels of a band.
  std::int64_t begin(int part) const { return pixels_[static_cast<std::size_t>(part)]; }
  std::int64_t end(int part) const { return begin(part + 1); }
  /// The first stretch that begins in the band or after it, and its first pixel.
  std::int64_t first(int part) const {
    return (begin(part) * kFrameNormChunks + pixels() - 1) / pixels();
  }
  std::int64_t first_pixel(int part) const { return pixel_of(first(part)); }
  std::int64_t count(int part) const { return first(part + 1) - first(part); }
  std::int64_t pixel_of(std::int64_t stretch) const {
    return ops::frame_chunk_begin(pixels(), stretch);
  }
  /// How many of a band's first pixels are of a stretch that began before; and which band that was.
  std::int64_t head(int part) const { return std::min(end(part), first_pixel(part)) - begin(part); }
  int owner_of_head(int part) const {
    do
      --part;
    while (count(part) == 0);
    return part;
  }

 private:
  std::vector<std::int64_t> pixels_;
};

/// The last stretch that begins in this rank's band, if bands below have some of it; theirs arrive.
/// Gives away the pixels of this band that are of a stretch above. A collective.
Tensor SpatialExchange::cut_stretch(const Stretches& all, const Tensor& x) const {
  std::vector<dist::Transfer> moving;
  Tensor given, joint;
  if (all.head(part()) > 0) {
    given = pixels_of(x, 0, all.head(part()));
    moving.push_back(line_.step(true, all.owner_of_head(part()), given, false, 0, {}));
  }
  std::vector<Tensor> heads;
  std::int64_t at = 0;  // of the joint stretch, where the heads go
  if (all.count(part()) > 0 && all.first_pixel(part() + 1) > all.end(part())) {
    const std::int64_t begin = all.pixel_of(all.first(part() + 1) - 1);
    joint = Tensor({x.size(0), 1, all.first_pixel(part() + 1) - begin, x.size(3)}, x.dtype(),
                   x.device());
    at = all.end(part()) - begin;
    copy_pixels(x, begin - all.begin(part()), all.end(part()) - all.begin(part()), joint, 0);
    for (int from = part() + 1; from < parts() && all.begin(from) < all.first_pixel(part() + 1);
         ++from) {
      heads.emplace_back(Shape{x.size(0), 1, all.head(from), x.size(3)}, x.dtype(), x.device());
      moving.push_back(line_.step(false, 0, {}, true, from, heads.back()));
    }
  }
  for (dist::Transfer& one : moving)
    one.wait();
  for (const Tensor& head : heads) {
    copy_pixels(head, 0, head.size(2), joint, at);
    at += head.size(2);
  }
  return joint;
}

Tensor SpatialExchange::whole_moments(const Tensor& x) const {
  if (parts() == 1) return ops::frame_moments(x);
  if (layout_device(x.device()) == Device::cuda) return moments_of_bands(x);
  const Stretches all(*this, x);
  const Tensor joint = cut_stretch(all, x);
  const std::int64_t frames = x.size(0), first = all.first(part()), count = all.count(part());
  const std::int64_t whole = joint.defined() ? count - 1 : count;
  std::vector<std::int64_t> bytes;
  for (int i = 0; i < parts(); ++i)
    bytes.push_back(frames * all.count(i) * static_cast<std::int64_t>(sizeof(ChunkSums)));
  const Tensor own({bytes[static_cast<std::size_t>(part())]}, DType::u8, x.device());
  if (x.device() != Device::meta) {
    const std::vector<ChunkSums> sums =
        ops::frame_chunk_sums(x, all.pixels(), all.begin(part()), first, whole);
    std::vector<ChunkSums> last;
    if (joint.defined())
      last =
          ops::frame_chunk_sums(joint, all.pixels(), all.pixel_of(first + whole), first + whole, 1);
    put_sums(own, sums, last, frames);
  }
  const std::vector<Tensor> given = share(own, bytes);
  if (x.device() == Device::meta) return ops::frame_moments(x);
  std::vector<ChunkSums> sums(static_cast<std::size_t>(frames * kFrameNormChunks));
  for (int i = 0; i < parts(); ++i)
    for (std::int64_t t = 0; t < frames; ++t)
      take_sums(given[static_cast<std::size_t>(i)], t, all.count(i),
                sums.data() + t * kFrameNormChunks + all.first(i));
  return ops::join_frame_chunks(sums, all.pixels(), x.size(3));
}

Tensor SpatialExchange::moments_of_bands(const Tensor& x) const {
  const Tensor own = ops::frame_moments(x);
  if (x.device() == Device::meta) return own;
  std::vector<Tensor> moments;
  std::vector<double> weights;
  for (const Tensor& given : share(own.to(Device::cpu).reshape({2 * x.size(0)}),
                                   std::vector(static_cast<std::size_t>(parts()), 2 * x.size(0)))) {
    const auto of = static_cast<int>(moments.size());
    weights.push_back(static_cast<double>(rows_above(of + 1, x) - rows_above(of, x)));
    moments.push_back(given.reshape({x.size(0), 2}));
  }
  return ops::combine_moments(moments, weights).to(x.device());
}

}  // namespace vfm::models
