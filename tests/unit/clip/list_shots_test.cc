// What `vfm-clip shots` asks of a network.
// SPDX-License-Identifier: Apache-2.0
#include "clip/lists/list_shots.h"

#include <fcntl.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "io/file.h"
#include "io/manifest.h"
#include "share/slots.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

/// A YUV4MPEG2 file of frames that are each of another grey.
std::string greys(int frames) {
  constexpr int kSide = 32;
  std::string file = "YUV4MPEG2 W32 H32 F25:1 Ip A1:1 C420jpeg\n";
  for (int i = 0; i < frames; ++i) {
    file += "FRAME\n";
    file.append(kSide * kSide, static_cast<char>(20 + 3 * i));
    file.append(kSide * kSide / 2, static_cast<char>(128));
  }
  return file;
}

}  // namespace

TEST_CASE("a network is asked once of each window, whatever the number of thresholds") {
  const TemporaryFolder folder;
  folder.write("greys.y4m", greys(60));  // its two windows are asked of behind its end
  ClipOptions options;
  options.inputs = {folder / "greys.y4m"};
  options.recipe.shots.detector = curate::Detector::transnetv2;
  options.thresholds = {0.3, 0.5, 0.7};
  std::atomic<int> asked = 0;
  options.change_model = [&](std::span<const std::uint8_t> frames) {
    ++asked;
    return std::vector<float>(frames.size() / (3 * curate::kChangeWidth * curate::kChangeHeight));
  };
  share::Slots slots(1);
  Progress progress;
  const io::File nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC), "/dev/null");
  io::ManifestWriter manifest(nowhere.fd());
  CHECK(list_shots(options, slots, progress, manifest) == 0);
  CHECK(asked == 2);
}
