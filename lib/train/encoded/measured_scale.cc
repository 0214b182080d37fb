// SPDX-License-Identifier: Apache-2.0
#include "train/encoded/measured_scale.h"

#include <omp.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/half.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "data/channel_sums.h"
#include "dist/together.h"
#include "share/ordered.h"
#include "tensor/device.h"

namespace vfm::train {
namespace {

using data::ChannelSums;

/// As they would be on disk.
void round_to_halves(std::vector<float>& values) {
  std::vector<std::uint16_t> halves(values.size());
  floats_to_halves(values, halves);
  halves_to_floats(halves, values);
}

/// {"place": sums, ...} of this rank's samples.
Json own_sums(dist::World& world, int channels, std::size_t size, int threads,
              const std::function<std::vector<float>(std::size_t i)>& latent_of) {
  const std::size_t count = std::min(size, kMeasured);
  const auto ranks = static_cast<std::size_t>(world.size());
  auto next = static_cast<std::size_t>(world.rank());
  share::Slots slots(threads > 0 ? threads : omp_get_max_threads());
  using Work = std::pair<std::size_t, std::size_t>;  // place, sample
  using Done = std::pair<std::size_t, std::optional<ChannelSums>>;
  Json sums = Json::object();
  share::for_each_ordered<Work, Done>(
      slots,
      [&]() -> std::optional<Work> {
        if (next >= count) return std::nullopt;
        const std::size_t place = std::exchange(next, next + ranks);
        return Work{place, place * size / count};
      },
      [&](Work& work) -> Done {
        check_stop();
        try {
          std::vector<float> latent = latent_of(work.second);
          round_to_halves(latent);
          return {work.first, ChannelSums::of(latent, channels)};
        } catch (const GpuError&) {
          throw;
        } catch (const Error& error) {
          log_info("not measured: {}", error.what());
          return {work.first, std::nullopt};
        }
      },
      [&](Done& done) {
        if (done.second) sums[std::to_string(done.first)] = done.second->to_json();
      },
      [](const Done& done) {
        return done.second ? held_bytes(done.second->sum) + held_bytes(done.second->squares) : 0;
      });
  return sums;
}

}  // namespace

models::LatentScale measure_scale(
    dist::World& world, int channels, std::size_t size, int threads,
    const std::function<std::vector<float>(std::size_t i)>& latent_of) {
  const std::size_t count = std::min(size, kMeasured);
  if (world.rank() == 0)
    log_info("mean and deviation of latents are measured of {}",
             counted(static_cast<std::int64_t>(count), "sample"));
  Json own;
  dist::on_all_ranks(world, [&] { own = own_sums(world, channels, size, threads, latent_of); });
  const std::vector<std::string> told = world.gather(dump_json(own));
  std::string scale;
  dist::on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    std::vector<Json> all;
    for (const std::string& text : told)
      all.push_back(parse_json(text, "what a rank has measured"));
    ChannelSums sums;
    for (std::size_t place = 0; place < count; ++place)
      if (const Json& of_rank = all[place % all.size()]; of_rank.contains(std::to_string(place)))
        sums.add(ChannelSums::from_json(of_rank[std::to_string(place)], channels));
    if (sums.count == 0) fail("none of the samples to measure the latents of could be read");
    scale = dump_json(data::channel_statistics(sums));
  });
  scale = dist::broadcast(world, scale);
  return models::LatentScale::from_json(parse_json(scale, "the measured scale"), "the latents");
}

}  // namespace vfm::train
