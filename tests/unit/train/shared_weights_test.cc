// Text encoders of ranks on several hosts, whose weights these read together.
// SPDX-License-Identifier: Apache-2.0
#include "train/encoded/shared_weights.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include "saved_state.h"
#include "support/pass_on.h"
#include "support/temporary_folder.h"
#include "train/encoded/encoders.h"

using namespace vfm;
using namespace vfm::train;

namespace {

/// A rank on a host of this name.
class HostWorld final : public PassingWorld {
 public:
  HostWorld(dist::World& world, std::string host) : PassingWorld(world), host_(std::move(host)) {}
  std::string host() const override { return host_; }
  std::unique_ptr<dist::Group> group(std::string_view axis, std::vector<int> ranks) override {
    return world_.group(axis, std::move(ranks));
  }

 private:
  std::string host_;
};

/// Tensors of many types. All bytes are the number of the rank that has opened them.
class NumberedSet final : public io::TensorSet {
 public:
  explicit NumberedSet(int rank) : TensorSet("model"), bytes_(1200, std::byte(rank)) {
    const auto put = [&](std::string name, const char* type, Shape shape, std::size_t bytes,
                         std::span<const float> scales = {}) {
      add({std::move(name), type, std::move(shape), std::span(bytes_).first(bytes), scales});
    };
    for (int i = 0; i < 10; ++i)
      put(fmt::format("f32 {}", i), "F32", {30, 10}, 1200);
    put("bf16", "BF16", {7, 3}, 42);
    put("one", "F32", {}, 4);
    put("codes", "F8_E4M3", {2, 5}, 10, scales_);
    put("blocks", "Q8_0", {2, 32}, 68);
    put("nothing", "F32", {0, 4}, 0);
  }
  void release(const io::TensorView&) const override {
    if (breaks) fail("the file has become shorter");
  }
  bool breaks = false;

 private:
  std::vector<std::byte> bytes_;
  std::vector<float> scales_ = {2, 3};
};

void clear_values(const std::string& safetensors) {
  std::string file = io::read_file(safetensors);
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof(header));
  const auto begin = static_cast<std::size_t>(header) + 8;
  std::fill(file.begin() + static_cast<std::ptrdiff_t>(begin), file.end(), '\0');
  // In place, as maps of the file are to see it.
  std::fstream(safetensors, std::ios::in | std::ios::out | std::ios::binary) << file;
}

/// A copy of a golden text encoder.
struct EncoderFolder {
  explicit EncoderFolder(const std::string& name) {
    std::filesystem::copy(std::string(VFM_GOLDEN) + "/" + name, path,
                          std::filesystem::copy_options::recursive);
  }
  void clear() const { clear_values(path + "/model.safetensors"); }
  TemporaryFolder folder;
  std::string path = folder / "encoder";
  EncoderNames names{.tokenizer = "builtin:wavelet", .text = path};
};

}  // namespace

TEST_CASE("each byte of shared weights is read by one rank and is on all hosts") {
  const std::vector<std::string> hosts = {"a", "b", "b", "a", "c"};
  std::vector<std::string> got(hosts.size());
  CHECK(on_ranks(5, [&](dist::World& threads) {
          const auto rank = static_cast<std::size_t>(threads.rank());
          HostWorld world(threads, hosts[rank]);
          const NumberedSet own(threads.rank() + 1);
          const auto shared = share_weights(world, own);
          if (!shared) fail("nothing is shared");
          for (const io::TensorView& tensor : shared->tensors()) {
            const io::TensorView& before = *own.find(tensor.name);
            if (tensor.dtype != before.dtype || tensor.shape != before.shape ||
                tensor.scales.data() != before.scales.data())
              fail("'{}' is another tensor", tensor.name);
            got[rank] += tensor.name + ": ";
            for (const std::byte value : tensor.data)
              got[rank] += static_cast<char>('0' + std::to_integer<int>(value));
          }
        }).empty());
  for (const std::string& one : got)
    CHECK(one == got[0]);
  CHECK(got[0].find("blocks: " + std::string(68, '5')) != std::string::npos);
  for (const char reader : {'1', '2', '3', '4', '5'})
    CHECK(got[0].find(std::string(1200, reader)) != std::string::npos);
}

TEST_CASE("ranks of one host share no weights: its system reads their file once") {
  CHECK(on_ranks(3, [](dist::World& threads) {
          HostWorld world(threads, "a");
          if (share_weights(world, NumberedSet(1))) fail("something is shared");
        }).empty());
}

TEST_CASE("weights that one rank cannot read end all ranks") {
  const auto errors = on_ranks(4, [](dist::World& world) {
    NumberedSet own(1);
    own.breaks = world.rank() == 2;
    share_weights(world, own);
  });
  CHECK(errors == std::vector<std::string>{"2: the file has become shorter"});
}

TEST_CASE("ranks of several hosts encode with weights that they have read at their start") {
  const std::string caption = "A red fox crosses a snowy road.";
  for (const std::string name : {"t5/v1_1", "sentences/bert"}) {
    INFO(name);
    const EncoderFolder folder(name);
    const std::vector<float> expected = Encoders(folder.names, Device::cpu).text(caption);
    std::atomic<int> same = 0;
    CHECK(on_ranks(3, [&](dist::World& world) {
            const Encoders encoders(folder.names, Device::cpu);
            encoders.load(world, true);
            world.barrier();
            if (world.rank() == 0) folder.clear();
            world.barrier();
            if (encoders.text(caption) == expected) ++same;
          }).empty());
    CHECK(same == 3);
    CHECK(Encoders(folder.names, Device::cpu).text(caption) != expected);
  }
}

TEST_CASE("ranks refuse together an encoder that is not the one that they have opened") {
  const EncoderFolder folder("t5/v1_1");
  std::atomic<int> refused = 0;
  on_ranks(2, [&](dist::World& world) {
    const Encoders encoders(folder.names, Device::cpu);
    world.barrier();
    if (world.rank() == 0) folder.clear();
    world.barrier();
    try {
      encoders.load(world, true);
    } catch (const dist::RefusedTogether& error) {
      if (std::string(error.what()).ends_with("that the embeddings were made with")) ++refused;
    }
  });
  CHECK(refused == 2);
}

TEST_CASE("the hashes of encoders are those that another rank has told") {
  EncoderFolder folder("t5/v1_1");
  const std::string vae = folder.folder / "vae";
  std::filesystem::copy(std::string(VFM_GOLDEN) + "/cosmos_vae", vae,
                        std::filesystem::copy_options::recursive);
  folder.names.tokenizer = vae;
  data::FileTexts texts;
  Encoders::tell(texts, folder.names, Device::cpu);
  const Encoders before(folder.names, Device::cpu);
  const Json tokenizer = before.tokenizer_identity();
  folder.clear();
  clear_values(vae + "/diffusion_pytorch_model.safetensors");
  {
    const data::GivenTexts given(texts);
    const Encoders told(folder.names, Device::cpu);
    CHECK(told.text_config() == before.text_config());
    CHECK(told.tokenizer_identity() == tokenizer);
  }
  const Encoders other(folder.names, Device::cpu);
  CHECK(other.text_config() != before.text_config());
  CHECK(other.tokenizer_identity() != tokenizer);
}
