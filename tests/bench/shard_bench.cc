// Speed of shards: writes two (1 KB and 1 MB samples) and reads them in order by index.
// Usage: shard_bench write FILE.tar SAMPLES BYTES | read FILE.tar
// Prints seconds, and what that means; tests/bench/shard.sh compares with cp.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "io/npy.h"
#include "shard/reader.h"
#include "shard/writer.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void write(const std::string& path, long samples, std::size_t bytes) {
  const std::string noise(bytes, '\x5a');
  const bool small = bytes < 65536;
  vfm::shard::Sample sample;
  const std::string json =
      R"({"width":1280,"height":720,"seconds":5.005,"fps":29.97,"caption":"a red fox","source":"a.mp4"})";
  const std::string first = small ? vfm::io::make_npy("|u1", {static_cast<std::int64_t>(bytes)},
                                                      noise.data(), noise.size())
                                  : noise;
  sample.members = {{small ? "npy" : "mp4", first}, {"json", json}, {"txt", "a red fox runs"}};
  const auto begin = Clock::now();
  vfm::shard::Writer writer(path);
  for (long i = 0; i < samples; ++i) {
    sample.key = fmt::format("{:032x}", i);
    writer.add(sample);
  }
  writer.finish();
  std::printf("%.6f\n", seconds_since(begin));
}

void report(const char* what, double seconds, std::int64_t samples, double bytes) {
  std::printf("  %-26s %10.0f samples/s %8.2f GB/s\n", what, static_cast<double>(samples) / seconds,
              bytes / seconds / 1e9);
}

void read(const std::string& path) {
  double bytes = 0;
  std::int64_t samples = 0;
  const auto pass = [&](const char* what, const auto& one) {
    double best = 1e9;
    for (int turn = 0; turn < 3; ++turn) {
      const auto begin = Clock::now();
      const vfm::shard::IndexedReader reader(path);
      samples = reader.samples();
      bytes = 0;
      for (std::int64_t i = 0; i < samples; ++i)
        bytes += static_cast<double>(one(reader, i));
      best = std::min(best, seconds_since(begin));
    }
    report(what, best, samples, bytes);
  };
  vfm::shard::ReadBuffer buffer;
  pass("by index, views", [&](const vfm::shard::IndexedReader& reader, std::int64_t i) {
    std::size_t size = 0;
    for (const auto& member : reader.view(i, buffer).members)
      size += member.data.size();
    return size;
  });
  pass("by index, own strings", [](const vfm::shard::IndexedReader& reader, std::int64_t i) {
    std::size_t size = 0;
    for (const auto& member : reader.read(i).members)
      size += member.data.size();
    return size;
  });
  const auto begin = Clock::now();
  vfm::shard::StreamReader stream(path);
  for (vfm::shard::Sample sample; stream.next(sample);) {
  }
  report("scanning (libarchive)", seconds_since(begin), samples, bytes);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 5 && std::strcmp(argv[1], "write") == 0)
    write(argv[2], std::atol(argv[3]), static_cast<std::size_t>(std::atol(argv[4])));
  else if (argc == 3 && std::strcmp(argv[1], "read") == 0)
    read(argv[2]);
  else
    vfm::fail("usage: shard_bench write FILE.tar SAMPLES BYTES | read FILE.tar");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "shard_bench: %s\n", error.what());
  return 1;
}
