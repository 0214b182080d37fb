// SPDX-License-Identifier: Apache-2.0
#include "nn/cp_kind.h"

#include <catch2/catch.hpp>

#include "models/dit/network.h"
#include "models/moviegen/moviegen.h"
#include "support/small_networks.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::models;
using namespace vfm::nn;

namespace {

constexpr std::int64_t kLong = 100000, kShort = 4096;

NetworkConfig config_of(int heads, int key_heads) {
  NetworkConfig c = tiny_dit();
  c.num_attention_heads = heads;
  if (key_heads != heads)
    c.architecture = &kMovieGen, c.own<models::MovieGenFields>().num_key_value_heads = key_heads;
  return c;
}

CpChoice chosen(const NetworkConfig& config, int tp, int cp, int of_machine, std::int64_t tokens) {
  return choose_cp_kind(config.heads(), {tp, cp, of_machine, tokens});
}

}  // namespace

TEST_CASE("kinds of context parallelism have names") {
  for (const CpKind kind :
       {CpKind::gather, CpKind::all_to_all, CpKind::ring, CpKind::all_to_all_ring})
    CHECK(parse_cp_kind(cp_kind_name(kind)) == kind);
  CHECK(cp_kind_name(CpKind::all_to_all_ring) == "all_to_all+ring");
  CHECK_THAT(usage_error([] { parse_cp_kind("rings"); }), Catch::Contains("'rings'"));
}

TEST_CASE("the bytes of an attention are those of the formulas") {
  const double S = 1200, H = 12, G = 6, K = 12, b = 2, t = 2, c = 4;
  const NetworkConfig config = config_of(12, 6);
  const CpRanks ranks{2, 4, 8, 1200};
  const double keys = 2 * (c - 1) * S / c * (G * K / t) * b;
  const CpBytes gather = cp_bytes({CpKind::gather, 1}, config.heads(), ranks, 2);
  CHECK(gather.forward == Approx(keys));
  CHECK(gather.backward == Approx(keys));
  const CpBytes ring = cp_bytes({CpKind::ring, 1}, config.heads(), ranks, 2);
  CHECK(ring.forward == Approx(keys));
  CHECK(ring.backward == Approx(keys * (b + 4) / b));
  const CpBytes heads = cp_bytes({CpKind::all_to_all, 4}, config.heads(), ranks, 2);
  CHECK(heads.forward == Approx((2 * H + 2 * G) * K / t * (c - 1) / c * S / c * b));
  CHECK(heads.backward == Approx(heads.forward));
  // Two ranks exchange tokens for heads, and then there are two places of 2/4 of the tokens.
  const CpBytes both = cp_bytes({CpKind::all_to_all_ring, 2}, config.heads(), ranks, 2);
  const double inside = (2 * H + 2 * G) * K / t / 2 * S / c * b;
  const double across = 2 * (S / 2) * (G * K / t / 2) * b;
  CHECK(both.forward == Approx(inside + across));
  CHECK(both.backward == Approx(inside + across * 3));
}

TEST_CASE("what ranks exchange is chosen by heads, machines and lengths") {
  const NetworkConfig many = config_of(8, 8), few = config_of(8, 2);
  const CpChoice all4{CpKind::all_to_all, 4}, ring{CpKind::ring, 1}, gather{CpKind::gather, 1};
  const CpChoice both2{CpKind::all_to_all_ring, 2};
  CHECK(chosen(many, 1, 4, 4, kLong) == all4);
  CHECK(chosen(many, 2, 4, 8, kLong) == all4);
  CHECK(chosen(many, 4, 4, 16, kLong) == both2);  // heads for two ranks beside the four
  CHECK(chosen(many, 1, 3, 3, kLong) == ring);
  CHECK(chosen(many, 1, 6, 6, kLong) == both2);
  CHECK(chosen(few, 1, 4, 4, kLong) == both2);  // heads of keys count, too
  // Machines.
  CHECK(chosen(many, 1, 4, 2, kLong) == both2);
  CHECK(chosen(many, 2, 4, 4, kLong) == both2);
  CHECK(chosen(many, 1, 4, 1, kLong) == ring);
  CHECK(chosen(many, 2, 2, 6, kLong) == ring);  // four ranks would lie on two machines
  // Lengths: if fewer bytes are sent.
  CHECK(chosen(many, 1, 4, 4, kShort) == all4);
  CHECK(chosen(many, 1, 2, 2, kShort) == CpChoice{CpKind::all_to_all, 2});  // as many
  CHECK(chosen(few, 1, 2, 2, kShort) == gather);
  CHECK(chosen(few, 1, 2, 2, kLong) == CpChoice{CpKind::all_to_all, 2});
  CHECK(chosen(many, 1, 3, 3, kShort) == gather);
  CHECK(chosen(many, 1, 3, 3, kShortPack) == gather);
  CHECK(chosen(many, 1, 3, 3, kShortPack + 1) == ring);
  CHECK(choose_cp_kind(tiny_stdit().heads(), {1, 3, 1, kShort}) == CpChoice{CpKind::all_to_all, 3});
}

TEST_CASE("a kind by name has its ranks for heads, or is refused with what can be") {
  const NetworkConfig config = config_of(8, 8);
  const auto found = [&](const char* name, int heads, int cp, int of_machine = 8) {
    return find_cp_kind(parse_cp_kind(name), heads, config.heads(), {1, cp, of_machine, kLong});
  };
  CHECK(found("auto", 0, 4) == CpChoice{CpKind::all_to_all, 4});
  CHECK(found("gather", 0, 4) == CpChoice{CpKind::gather, 1});
  CHECK(found("all_to_all", 0, 4) == CpChoice{CpKind::all_to_all, 4});
  CHECK(found("ring", 0, 4) == CpChoice{CpKind::ring, 1});
  CHECK(found("all_to_all+ring", 0, 4) == CpChoice{CpKind::all_to_all_ring, 2});
  CHECK(found("all_to_all+ring", 0, 8) == CpChoice{CpKind::all_to_all_ring, 4});
  CHECK(found("all_to_all+ring", 0, 8, 2) == CpChoice{CpKind::all_to_all_ring, 2});
  CHECK(found("all_to_all+ring", 0, 8, 1) == CpChoice{CpKind::all_to_all_ring, 4});
  CHECK(found("all_to_all+ring", 2, 8) == CpChoice{CpKind::all_to_all_ring, 2});
  CHECK(found("all_to_all+ring", 8, 8) == CpChoice{CpKind::all_to_all, 8});
  CHECK(found("all_to_all+ring", 1, 8) == CpChoice{CpKind::ring, 1});
  CHECK_THAT(usage_error([&] { found("all_to_all+ring", 3, 8); }),
             Catch::Contains("cp_heads=3 does not divide parallel.cp=8: 2 does"));
  CHECK_THAT(usage_error([&] { found("all_to_all+ring", 0, 2); }),
             Catch::Contains("parallel.cp_kind=all_to_all can be"));
  CHECK_THAT(usage_error([&] { found("all_to_all+ring", 0, 3); }),
             Catch::Contains("parallel.cp_kind=ring can be"));
}
