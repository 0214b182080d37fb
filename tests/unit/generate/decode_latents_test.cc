// SPDX-License-Identifier: Apache-2.0
#include "generate/decode/decode_latents.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <string>

#include "base/hash.h"
#include "base/json.h"
#include "dist/world.h"
#include "generate/files/latent_files.h"
#include "generate/request/latent_facts.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/manifest.h"
#include "support/samples.h"

using namespace vfm;
using namespace vfm::generate;

namespace {

/// The record of the clip that is decoded on the CPU from a latent of one frame of 16x16, made on
/// `device` with the model of a checkpoint that says as much as decoding needs.
Json decoded(const Json& tokenizer, int channels, const char* device) {
  const TemporaryFolder scratch;
  const std::string model = scratch / "model";
  io::make_directories(model);
  const Json train = {{"tokenizer", tokenizer},
                      {"text_encoder", {{"name", "builtin:hash"}}},
                      {"latent_scale", nullptr},
                      {"trained", {{"frames", 1}, {"height", 4}, {"width", 4}}}};
  io::write_file(io::join_path(model, "train.json"), dump_json(train));
  io::write_file(io::join_path(model, "COMPLETE"), "");
  Json record = {
      {"prompt", "a red fox"}, {"frames", 1}, {"width", 16}, {"height", 16}, {"fps", 12}};
  record["model_hash"] = io::hash_file(io::join_path(model, "COMPLETE"));
  if (std::string(device) != "cpu") record["device"] = device;
  record["address"] = hash_hex(dump_json(latent_facts(record)));
  const std::string path = scratch / (std::string("fox") + kLatentsExtension);
  write_latent(io::dir_name(path), "fox",
               {channels, 1, 4, 4, std::vector<float>(static_cast<std::size_t>(16 * channels))},
               record["address"]);
  record.update({{"kind", "latents"}, {"path", path}, {"name", "fox"}, {"quality", 12}});
  record["model"] = model;
  io::write_file(scratch / "fox.latents.json", dump_json(record));
  share::Slots slots(1);
  const io::File lines(::open("/dev/null", O_WRONLY | O_CLOEXEC), "/dev/null");
  io::ManifestWriter manifest(lines.fd());
  CHECK(decode_latents({{path}, "", "", scratch / "clips", false, "ffv1", {}, Device::cpu},
                       *dist::self_world(), slots, no_progress(), manifest) == 0);
  return parse_json(io::read_file(scratch / "clips/fox.json"), "the clip's record");
}

}  // namespace

TEST_CASE("a clip says where it was decoded, if that is elsewhere and changes its bytes") {
  const Json wavelet = {{"name", "builtin:wavelet"}};
  const Json cosmos = {{"name", "AutoencoderKLCosmos"},
                       {"path", std::string(VFM_GOLDEN) + "/cosmos_vae"}};
  CHECK(decoded(cosmos, 3, "cuda").value("decoded_on", "") == "cpu");
  CHECK_FALSE(decoded(cosmos, 3, "cpu").contains("decoded_on"));
  CHECK_FALSE(decoded(wavelet, 24, "cuda").contains("decoded_on"));
  CHECK(decoded(wavelet, 24, "cuda")["device"] == "cuda");
}
