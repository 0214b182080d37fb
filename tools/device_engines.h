// Decodes and encodes on video engines of the GPUs of --device, or of the first GPU. The number of
// sessions (share/engine_sessions.h) on the GPUs of --device is limited. If --device names no GPU,
// sessions on the first GPU are limited only with VFM_SHARE.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cli/options.h"
#include "device_workers.h"
#include "media/decode/hardware.h"
#include "media/encode/encode_sessions.h"
#include "media/encode/encoder.h"
#include "share/engine_sessions.h"
#include "workers/find_gpus.h"

namespace vfm::cli {

/// Opens the hardware decoders and encoders of a tool. Call all functions before workers_of().
class DeviceEngines {
 public:
  DeviceEngines(WorkerOptions& device, const JobOptions& jobs, std::string program)
      : device_(device), jobs_(jobs), program_(std::move(program)) {}
  ~DeviceEngines() {
    if (encode_) media::set_encode_sessions(nullptr);
  }

  /// Checks --device of a run without a model. Throws Error{usage} if --device is given and no
  /// engine is used. The error advises the user to give the option named `model`.
  void check_work(const char* model, const HwaccelOptions& hwaccel,
                  const std::string& encoder) const {
    if (device_.device == "auto") return;
    const bool gpus = !device_.device.starts_with("cpu");
    if (gpus && (hwaccel.hwaccel != "none" || media::encodes_on_gpu(encoder))) return;
    fail_usage("--device {} has no work: give {}{}", device_.device, model,
               gpus ? ", --hwaccel cuda, or --encoder h264_nvenc" : "");
  }

  /// Returns the result of media::choose_hardware(), and throws its errors. The result lives as
  /// long as this object. With --hwaccel cuda, a decoder waits until a session is free. With
  /// --hwaccel auto, a decoder does not wait.
  const media::HardwareDecoder* decoder(const HwaccelOptions& hwaccel) {
    if (hwaccel.hwaccel == "none") return nullptr;
    std::vector<share::SharedGpu> gpus = chosen_gpus();
    std::vector<int> numbers;
    bool all = true;
    for (share::SharedGpu& gpu : gpus) {
      numbers.push_back(gpu.index);
      all = all && media::why_no_hardware(gpu.index).empty();
      gpu.sessions = all ? media::decode_sessions_of(gpu.index) : 0;
    }
    if (gpus.empty()) numbers = {0};
    if (gpus.empty() && !jobs_.share.empty() && media::why_no_hardware().empty()) {
      gpus = first_gpu();
      for (share::SharedGpu& gpu : gpus)
        gpu.sessions = media::decode_sessions_of(gpu.index);
    }
    if (all && !gpus.empty())
      decode_ = make(std::move(gpus), share::GpuKind::decode,
                     hwaccel.hwaccel == "cuda" ? share::EngineSessions::Wait::yes
                                               : share::EngineSessions::Wait::no);
    hardware_ = media::choose_hardware(hwaccel.hwaccel, numbers, decode_.get());
    return hardware_.get();
  }

  /// If `encoder` runs on a GPU, allows its encoders to take sessions, and returns true. An empty
  /// name means the default encoder.
  bool encode(const std::string& encoder) {
    if (!device_.workers() && jobs_.share.empty()) return false;
    if (!media::encodes_on_gpu(encoder.empty() ? media::default_encoder() : encoder)) return false;
    std::vector<share::SharedGpu> gpus = chosen_gpus();
    if (gpus.empty() && !jobs_.share.empty()) gpus = first_gpu();
    if (gpus.empty()) return false;
    for (share::SharedGpu& gpu : gpus)
      gpu.sessions = media::kEncodeSessions;
    encode_ = make(std::move(gpus), share::GpuKind::encode, share::EngineSessions::Wait::yes);
    media::set_encode_sessions(encode_.get());
    return true;
  }

 private:
  std::vector<share::SharedGpu> chosen_gpus() {
    std::vector<share::SharedGpu> gpus = device_.gpus();
    std::erase_if(gpus, [](const share::SharedGpu& gpu) { return gpu.index < 0; });
    return gpus;
  }
  /// Returns the GPU that FFmpeg uses. Returns no GPU if there is none, or if FFmpeg's GPU cannot
  /// be identified, as with GPU instances (MIG).
  static std::vector<share::SharedGpu> first_gpu() {
    try {
      return workers::find_gpus({"0"});
    } catch (const Error& error) {
      log_info("videos on a GPU are not counted with those of other programs: {}", error.what());
      return {};
    }
  }
  std::unique_ptr<share::EngineSessions> make(std::vector<share::SharedGpu> gpus,
                                              share::GpuKind kind,
                                              share::EngineSessions::Wait wait) {
    auto sessions =
        std::make_unique<share::EngineSessions>(jobs_.share, std::move(gpus), program_, kind, wait);
    device_.keep_for(*sessions, !jobs_.share.empty());
    return sessions;
  }

  WorkerOptions& device_;
  const JobOptions& jobs_;
  std::string program_;
  std::unique_ptr<share::EngineSessions> decode_, encode_;
  std::shared_ptr<const media::HardwareDecoder> hardware_;
};

}  // namespace vfm::cli
