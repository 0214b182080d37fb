// The time and the memory that Wan's video autoencoder of a published size takes to encode and
// decode a video. wan_vae_torch.py measures diffusers' module in PyTorch.
//
//   wan_vae 2.1|2.2 FRAMES HEIGHT WIDTH [f32|bf16 [ROUNDS [BAND_PIXELS]]]
// Prints one line: vfm, model, size, dtype, best milliseconds to encode, to decode, processor
// seconds of all rounds, peak resident MiB.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>
#include <vector>

#include "base/philox.h"
#include "cli/waiting.h"
#include "models/wan_vae/autoencoder.h"

using namespace vfm;

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

models::WanVaeConfig config_of(const std::string& model) {
  models::WanVaeConfig config;
  if (model == "2.1") return config;
  config.base_dim = 160, config.decoder_base_dim = 256, config.z_dim = 48;
  config.is_residual = true;
  config.in_channels = config.out_channels = 12, config.patch_size = 2;
  return config;
}

/// Random weights, of the size that keeps numbers about as large as they are.
void fill(const models::WanAutoencoder& model) {
  for (nn::Parameter* p : model.parameters()) {
    const Tensor values(p->shape());
    Random(0, Purpose::test, 0, random_key(p->name)).fill_uniform(values.floats());
    const float scale =
        p->shape().size() > 1
            ? std::sqrt(static_cast<float>(p->shape()[0]) / static_cast<float>(p->elements()))
            : 0.02f;
    const float add = p->name.ends_with("gamma") ? 1.f : 0.f;
    for (float& v : values.floats())
      v = (2 * v - 1) * scale + add;
    p->write(values);
  }
}

struct Times {
  double encode = 1e30, decode = 1e30;
};

Times run(const models::WanAutoencoder& model, const Tensor& frame, int frames, std::int64_t band) {
  std::vector<Tensor> latents;
  const double start = seconds();
  {
    auto stream = model.encoder(band);
    for (int t = 0; t < frames; ++t)
      if (const Tensor latent = stream.push(frame, t + 1 == frames); latent.defined())
        latents.push_back(latent);
  }
  const double middle = seconds();
  auto stream = model.decoder(band);
  for (std::size_t t = 0; t < latents.size(); ++t)
    stream.push(latents[t], t + 1 == latents.size(), [](const Tensor&) {});
  return {middle - start, seconds() - middle};
}

int bench(int argc, char** argv) {
  cli::wait_politely();  // as the programs do
  if (argc < 5) {
    std::fprintf(stderr,
                 "usage: %s 2.1|2.2 FRAMES HEIGHT WIDTH [f32|bf16 [ROUNDS [BAND_PIXELS]]]\n",
                 argv[0]);
    return 2;
  }
  const int frames = std::atoi(argv[2]), height = std::atoi(argv[3]), width = std::atoi(argv[4]);
  const std::string dtype = argc > 5 ? argv[5] : "f32";
  const int rounds = argc > 6 ? std::atoi(argv[6]) : 2;
  const std::int64_t band = argc > 7 ? std::atoi(argv[7]) : 1 << 15;
  const models::WanVaeConfig config = config_of(argv[1]);
  const models::WanAutoencoder model(config, dtype == "bf16" ? DType::bf16 : DType::f32);
  fill(model);
  const Tensor frame({height / config.patch_size, width / config.patch_size, config.in_channels});
  Random(0, Purpose::test).fill_uniform(frame.floats());
  Times best;
  std::clock_t processor = 0;
  for (int i = 0; i <= rounds; ++i) {  // the first is not counted, if there are others
    const std::clock_t before = std::clock();
    const Times times = run(model, frame, frames, band);
    if (i == 0 && rounds > 0) continue;
    processor += std::clock() - before;
    best.encode = std::min(best.encode, times.encode);
    best.decode = std::min(best.decode, times.decode);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("vfm %s %dx%dx%d %s encode %.0f ms decode %.0f ms cpu %.1f s peak %.0f MiB\n",
              argv[1], frames, height, width, dtype.c_str(), 1e3 * best.encode, 1e3 * best.decode,
              static_cast<double>(processor) / CLOCKS_PER_SEC,
              static_cast<double>(usage.ru_maxrss) / 1024);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
