// What is searched for is encoded once, by whichever thread comes first; the others wait for that.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/file_query.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "columns/embed/clip_vector.h"
#include "media/decode/hardware_decoder.h"
#include "media/encode/encoder.h"
#include "models/encoder/picture_encoder.h"
#include "share/engine_sessions.h"
#include "share/slots.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

/// Takes sessions, and leaves all pictures to software.
class OnlySessions final : public media::HardwareDecoder {
 public:
  explicit OnlySessions(share::EngineSessions& sessions) : sessions_(sessions) {}
  share::EngineSessions* sessions() const override {
    ++asked;
    return &sessions_;
  }
  std::int64_t session_bytes(const AVCodecContext&) const override { return 1; }
  bool attach(AVCodecContext&, int) const override { return false; }
  media::AvFramePtr fetch(media::AvFramePtr) const override { return nullptr; }

  mutable std::atomic<int> asked = 0;

 private:
  share::EngineSessions& sessions_;
};

std::string write_small_video(const TemporaryFolder& folder) {
  media::VideoEncoder encoder(
      {.width = 64, .height = 64, .time_base = {1, 25}, .frame_rate = {25, 1}});
  for (int i = 0; i < 3; ++i)
    encoder.add(media::RgbImage{64, 64, std::vector<std::uint8_t>(3 * 64 * 64, 90)}, i);
  folder.write("query.mp4", encoder.finish());
  return folder / "query.mp4";
}

void await_true(const std::atomic<bool>& what) {
  for (int i = 0; i < 20'000 && !what; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(what);
}

}  // namespace

TEST_CASE("who waits for another thread's encoding of a query leaves its slot to others") {
  const std::string model = VFM_GOLDEN "/picture_encoders/clip";
  const Json config =
      clip_vector_config(*models::make_picture_encoder(model, Device::cpu, DType::f32), 2);
  const TemporaryFolder folder;
  share::EngineSessions sessions("", {{0, "gpu", std::int64_t{16} << 30, 1}}, "test",
                                 share::GpuKind::decode, share::EngineSessions::Wait::yes);
  const OnlySessions hardware(sessions);
  FileQuery query(write_small_video(folder), &hardware);
  auto held = sessions.take(1);
  const int before = hardware.asked;
  share::Slots slots(1);
  std::atomic<bool> first_asks = false, second_begins = false, over = false, got = false;
  std::vector<const std::vector<float>*> vectors(2);
  const auto ask = [&](std::size_t number, std::atomic<bool>* begins) {
    const share::Slots::Hold hold(slots);
    if (begins) *begins = true;
    vectors[number] = &query.vector(config, "sample");
  };
  std::thread first([&] { ask(0, nullptr); });
  std::thread watch([&] {
    while (hardware.asked == before)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    first_asks = true;
  });
  await_true(first_asks);
  watch.join();
  std::thread second([&] { ask(1, &second_begins); });
  await_true(second_begins);
  std::thread timer([&] {
    for (int i = 0; i < 5'000 && !got; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    over = true;
  });
  {
    const share::Slots::Hold hold(slots, share::Slots::Use::item, &over);
    got = static_cast<bool>(hold);
  }
  CHECK(got);
  held.reset();
  first.join();
  second.join();
  timer.join();
  CHECK(vectors[0] == vectors[1]);
  CHECK(hardware.asked > before);
}
