// The base class of the Tools of `vfm-clip shots` and `vfm-clip unique`, which decode but do not
// encode videos.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/error.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "device_engines.h"
#include "media/isolate/isolated.h"

class ClipReadingTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-clip"; }
  int fork_helper() override { return vfm::media::fork_isolation(input_limits_.limits.isolate); }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

 protected:
  void add_work(vfm::cli::Options& options) {
    options.group("Work");
    jobs_.add(options);
    hwaccel_.add(options);
    device_.add_workers(options).needs(options.row("--hwaccel"));
    input_limits_.add(options);
    input_limits_.add_isolation(options);
  }
  /// Sets limits for FFmpeg. Call check_work() first in check().
  void check_work() {
    input_limits_.check_isolation(hwaccel_);
    input_limits_.apply();
    if (device_.device.starts_with("cpu"))
      vfm::fail_usage("--device {} names no GPU to decode on: name GPUs, or leave out --hwaccel",
                      device_.device);
    device_.gpus();
  }
  /// Returns the hardware decoder, or null for decoding in software. Call begin_work() first in
  /// run().
  const vfm::media::HardwareDecoder* begin_work() {
    vfm::media::begin_isolation();
    return engines_.decoder(hwaccel_);
  }

  vfm::cli::JobOptions jobs_;

 private:
  vfm::cli::HwaccelOptions hwaccel_;
  vfm::cli::InputLimitOptions input_limits_;
  vfm::cli::WorkerOptions device_;
  vfm::cli::DeviceEngines engines_{device_, jobs_, "vfm-clip"};
};
