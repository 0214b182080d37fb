// TransNet V2 against the public PyTorch module (scripts/golden/transnet.py).
// SPDX-License-Identifier: Apache-2.0
#include "models/transnet/transnet.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <thread>

#include "base/json.h"
#include "io/safetensors.h"
#include "models/folder/load_tensors.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using models::TransNet;

namespace {

const std::string kTransNet = std::string(VFM_GOLDEN) + "/transnet";

/// As the script makes them.
std::vector<std::uint8_t> golden_frames(std::int64_t count) {
  std::vector<std::uint8_t> bytes;
  for (std::int64_t n = 0; n < count; ++n)
    for (std::int64_t y = 0; y < TransNet::kHeight; ++y)
      for (std::int64_t x = 0; x < TransNet::kWidth; ++x)
        for (std::int64_t c = 0; c < 3; ++c) {
          const std::int64_t shot = n / 17;
          const std::int64_t plain =
              (x * (shot % 5 + 1) + y * (shot % 3 + 2) + 3 * n + 90 * c * (shot % 4)) % 256;
          const std::int64_t noise =
              ((n * 7919 + y * 104729 + x * 1299709 + c * 15485863) * 2654435761 >> 16) % 32;
          bytes.push_back(static_cast<std::uint8_t>((plain + noise) % 256));
        }
  return bytes;
}

/// The small model with other tensors, in a folder.
class ChangedModel {
 public:
  ChangedModel() : set_(kTransNet + "/model", "model") {
    for (const io::TensorView& tensor : set_.tensors())
      tensors_[tensor.name] = tensor;
  }
  io::TensorView& operator[](const std::string& name) { return tensors_.at(name); }
  void remove(const std::string& name) { REQUIRE(tensors_.erase(name) == 1); }
  void add(io::TensorView tensor) { tensors_[tensor.name] = std::move(tensor); }
  /// What reading it says.
  std::string refused() const {
    return usage_error([&] { TransNet{write()}; });
  }
  std::string write() const {
    std::vector<io::TensorView> list;
    for (const auto& [name, tensor] : tensors_)
      list.push_back(tensor);
    io::write_safetensors(folder_.path, "model", list);
    return folder_.path;
  }

 private:
  TemporaryFolder folder_;
  io::SafetensorsSet set_;
  std::map<std::string, io::TensorView> tensors_;
};

}  // namespace

TEST_CASE("TransNet V2 gives the probabilities of the public module, with any number of threads") {
  const io::SafetensorsSet golden(kTransNet, "outputs");
  const Tensor expected = models::read_floats(*golden.find("window"));
  const TransNet model(kTransNet + "/model");
  const std::vector<std::uint8_t> frames = golden_frames(100);
  const std::vector<float> alone = model.probabilities(frames);
  REQUIRE(alone.size() == 100);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    INFO(i);
    CHECK(std::abs(alone[i] - expected.floats()[i]) < 1e-4);
  }
  std::vector<std::vector<float>> together(3);
  std::vector<std::thread> threads;
  for (std::vector<float>& one : together)
    threads.emplace_back([&] { one = model.probabilities(frames); });
  for (std::thread& thread : threads)
    thread.join();
  for (const std::vector<float>& one : together)
    CHECK(one == alone);
  CHECK(model.probabilities({}).empty());
  CHECK_THROWS_AS(model.probabilities(std::span(frames).first(5000)), Error);
}

TEST_CASE("stretches of any length are judged, by the same rule") {
  const TransNet model(kTransNet + "/model");
  // 113 is no multiple of any dilation; what lies beyond the reach of the network changes nothing.
  const std::vector<float> long_one = model.probabilities(golden_frames(113));
  CHECK(long_one.size() == 113);
  CHECK(model.probabilities(golden_frames(1)).size() == 1);
  const std::vector<float> one = model.probabilities(golden_frames(100));
  CHECK(std::abs(one[10] - long_one[10]) < 1e-5);
}

TEST_CASE("the second head and the counters of batch norms are not needed, and not the identity") {
  ChangedModel model;
  model.remove("cls_layer2.weight");
  model.remove("cls_layer2.bias");
  model.remove("SDDCNN.1.DDCNN.0.bn.num_batches_tracked");
  const TransNet changed(model.write()), whole(kTransNet + "/model");
  CHECK(changed.config() == whole.config());
  CHECK(changed.config()["name"] == "transnetv2");
  const std::vector<std::uint16_t> bias{0x3c00};  // 1
  model["cls_layer1.bias"].data = std::as_bytes(std::span(bias));
  CHECK(TransNet(model.write()).config() != whole.config());
}

TEST_CASE("what is no TransNet V2 is refused, before a value is read") {
  CHECK_THAT(usage_error([] { TransNet{"/nowhere"}; }),
             Catch::Contains("no such model folder: '/nowhere'"));
  const TemporaryFolder empty;
  CHECK_THAT(usage_error([&] { TransNet{empty.path}; }), Catch::Contains("has no weights"));
  const auto refused = [](auto change) {
    ChangedModel model;
    change(model);
    return model.refused();
  };
  CHECK_THAT(refused([](ChangedModel& m) { m.remove("fc1.weight"); }),
             Catch::Contains("holds no TransNet V2: there is no fc1.weight"));
  CHECK_THAT(refused([](ChangedModel& m) { m.remove("color_hist_layer.fc.bias"); }),
             Catch::Contains("1 missing: 'color_hist_layer.fc.bias'"));
  CHECK_THAT(refused([](ChangedModel& m) {
               m["fc1.bias"].shape = {2, 4};
             }),
             Catch::Contains("'fc1.bias' is [2, 4], the model needs [8]"));
  CHECK_THAT(refused([](ChangedModel& m) {
               io::TensorView more = m["fc1.bias"];
               more.name = "conv.weight";
               m.add(more);
             }),
             Catch::Contains("1 unexpected: 'conv.weight'"));
  const std::vector<std::uint16_t> nan(8, 0x7e00), below(4, 0xbc00), zeros(20000);
  CHECK_THAT(refused([&](ChangedModel& m) { m["fc1.bias"].data = std::as_bytes(std::span(nan)); }),
             Catch::Contains("fc1.bias has values that are not finite"));
  CHECK_THAT(refused([&](ChangedModel& m) {
               m["SDDCNN.0.DDCNN.1.bn.running_var"].data = std::as_bytes(std::span(below));
             }),
             Catch::Contains("a variance of a batch norm is below 0"));
  CHECK_THAT(refused([&](ChangedModel& m) {
               io::TensorView& bias = m["fc1.weight"];
               bias.shape = {20000, 1};
               bias.data = std::as_bytes(std::span(zeros));
             }),
             Catch::Contains("at most 128 and 16384 are supported"));
}

TEST_CASE("weights that make no numbers of frames are told") {
  ChangedModel model;
  io::TensorView& weight = model["fc1.weight"];
  const std::vector<float> values(static_cast<std::size_t>(weight.elements()), 3e38f);
  weight.dtype = "F32";
  weight.data = std::as_bytes(std::span(values));
  io::TensorView& head = model["cls_layer1.weight"];
  const std::vector<float> mixed{3e38f, -3e38f, 3e38f, -3e38f, 3e38f, -3e38f, 3e38f, -3e38f};
  head.dtype = "F32";
  head.data = std::as_bytes(std::span(mixed));
  const TransNet broken(model.write());
  CHECK_THROWS_WITH(broken.probabilities(golden_frames(100)), Catch::Contains("no numbers"));
}
