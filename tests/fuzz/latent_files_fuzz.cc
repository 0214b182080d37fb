// What vfm-generate keeps of an unfinished clip, and latents for vfm-generate decode.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "fuzz.h"
#include "generate/files/latent_files.h"
#include "io/file.h"
#include "support/temporary_folder.h"

using namespace vfm;

namespace {

const TemporaryFolder& folder() {
  static const TemporaryFolder one;
  return one;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  folder().write("clip.state.safetensors", bytes);
  folder().write("clip.latents.safetensors", bytes);
  try {
    generate::read_state(folder().path, "clip", "ab12");
  } catch (const Error&) {
  }
  try {
    const generate::Latent latent = generate::read_latent(folder().path, "clip", "ab12");
    if (latent.values.size() !=
        static_cast<std::size_t>(latent.channels) * latent.frames * latent.height * latent.width)
      std::abort();
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string path = folder().path;
  generate::write_state(path, "seed", {3, {1, 2, 3}, {{4, 5, 6}}}, "ab12");
  generate::write_latent(path, "seed", {1, 2, 1, 2, {1, 2, 3, 4}}, "ab12");
  return {io::read_file(path + "/seed.state.safetensors"),
          io::read_file(path + "/seed.latents.safetensors")};
}
