// Which GPUs --device means. The GPUs of the machine are listed by a process of its own, which
// this program is, too (worker_test.cc).
// SPDX-License-Identifier: Apache-2.0
#include "workers/find_gpus.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "support/usage_error.h"
#include "tensor/device.h"

using namespace vfm;
using namespace vfm::workers;
using Catch::Contains;

TEST_CASE("cpu is as many workers as it is named, each a GPU of its own") {
  const std::vector<share::SharedGpu> gpus = find_gpus({"cpu", "cpu", "cpu"});
  REQUIRE(gpus.size() == 3);
  CHECK(gpus[2].name == "cpu 2");
  CHECK(gpus[2].index == -3);
  CHECK(gpus[0].memory > 0);
  CHECK(device_of(gpus) == Device::cpu);
}

TEST_CASE("words that are no devices, or do not go together, are refused") {
  const auto refused = [](const std::vector<std::string>& devices) {
    return usage_error([&] { find_gpus(devices); });
  };
  CHECK_THAT(refused({}), Contains("names no device"));
  for (const char* word : {"", "-1", "1x", "0 ", "+1", "cuda", "99999999999999999999"})
    CHECK_THAT(refused({word}), Contains("nor the number of a GPU"));
  CHECK_THAT(refused({"all", "1"}), Contains("leave out the others"));
  CHECK_THAT(refused({"1", "0", "1"}), Contains("GPU 1 twice"));
  CHECK_THAT(refused({"0", "cpu"}), Contains("name GPUs alone, or cpu alone"));
}

TEST_CASE("GPUs are chosen by the numbers that CUDA has for those that it shows") {
  FoundGpus found{
      "",
      {{0, "GPU-5e6b", std::int64_t{80} << 30}, {1, "GPU-11aa", std::int64_t{80} << 30}},
      {"NVIDIA H100", "NVIDIA H100"}};
  const std::vector<share::SharedGpu> all = choose_gpus({"all"}, found);
  REQUIRE(all.size() == 2);
  CHECK(all[1].index == 1);
  const std::vector<share::SharedGpu> turned = choose_gpus({"1", "0"}, found);
  REQUIRE(turned.size() == 2);
  CHECK(turned[0].name == "GPU-11aa");
  const auto refused = [&](const char* device) {
    return usage_error([&] { choose_gpus({device}, found); });
  };
  CHECK(refused("2") ==
        "--device 2: there is no such GPU; there are 0 (NVIDIA H100, GPU-5e6b, 80.0 GiB), 1 "
        "(NVIDIA H100, GPU-11aa, 80.0 GiB)");
  CHECK_THAT(usage_error([] { find_gpus({"GPU-5e6b"}); }), Contains("CUDA_VISIBLE_DEVICES"));
  found.models[0] = "NVIDIA A100-SXM4-40GB MIG 1g.5gb";
  CHECK_THAT(refused("all"), Contains("NVIDIA A100-SXM4-40GB MIG 1g.5gb is an instance") &&
                                 Contains("--device cuda"));
  CHECK(choose_gpus({"1"}, found).size() == 1);
  found = {"the driver is too old", {}, {}};
  CHECK_THAT(refused("all"), Contains("there is no usable GPU: the driver is too old"));
}

TEST_CASE("a GPU that is not there is refused, with those that are") {
  const std::string why = usage_error([] { find_gpus({"9999"}); });
  if (!why_no_gpu().empty()) {
    CHECK_THAT(why, Contains("there is no usable GPU: " + why_no_gpu()));
    return;
  }
  CHECK_THAT(why, Contains("there is no such GPU; there are 0 (" + list_gpus().at(0).name));
  const std::vector<share::SharedGpu> all = find_gpus({"all"});
  REQUIRE(all.size() == list_gpus().size());
  CHECK(all[0].name == list_gpus()[0].uuid);
  CHECK(all[0].memory > 0);
  CHECK(device_of(all) == Device::cuda);
}
