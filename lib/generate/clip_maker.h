// Makes clips from prompts with this process's generator: requests, the measurement of FP8 or 8-bit
// weights before the first clip, and each clip's file and record. generate/generate.cc and
// generate/ranks/clip_service.h decide order and process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "generate/files/clip_output.h"
#include "generate/generate.h"
#include "generate/request/named_request.h"
#include "generate/request/request_parcel.h"
#include "generate/sampling/generator.h"

namespace vfm::generate {

/// Thread-safety: make() from any thread; the rest from one thread. Do not call ask() while the
/// clip of the first request is made.
class ClipMaker {
 public:
  /// `job`, `output` and `progress` must outlive this object.
  ClipMaker(const GenerateJob& job, Generator generator, const std::string& tokenizer_compute,
            const ClipFolder& output, Progress& progress);
  ClipMaker(const ClipMaker&) = delete;
  ClipMaker& operator=(const ClipMaker&) = delete;

  /// Returns the request of the next prompt, or the error why there is none. On the first request
  /// measures FP8 or 8-bit weights, and uses them from then on. Throws Error if they change the
  /// output more than allowed.
  Asked ask(PromptLine line);
  /// The error measured by this process or another.
  std::optional<double>& output_error() { return output_error_; }
  /// Measures FP8 or 8-bit weights on this request, if they are wanted and were not measured yet.
  void measure(const NamedRequest& request);
  /// Uses FP8 or 8-bit weights from now on; another process has measured their error.
  void use_known(double output_error);
  /// Makes the clip of a request as a file, or its latent if the output is "-". Without a request
  /// returns the error.
  Result make(Asked& asked) const;
  const Generator& generator() const { return generator_; }
  RequestMaker& requests() { return requests_; }

 private:
  Json describe(const NamedRequest& request) const;
  Json record_of(const NamedRequest& request) const;
  void make_file(Result& result) const;
  Latent make_latent(const NamedRequest& request) const;
  models::SamplerState kept_state(const NamedRequest& request, const std::string& address) const;

  const GenerateJob& job_;
  Progress& progress_;
  const ClipFolder& output_;
  Generator generator_;
  ModelInUse in_use_;
  RequestMaker requests_;
  std::optional<double> output_error_;  ///< error of FP8 or 8-bit weights on the first request
};

/// Throws Error if the measured error exceeds the job's limit.
void check_output_error(const GenerateJob& job, const std::optional<double>& error);

}  // namespace vfm::generate
