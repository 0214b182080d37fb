// Prompts to clips by the generator of this process: what is asked for, how FP8 and 8 bits are
// measured before the first clip, and each clip's file and record. In which order, and by which
// process of several, others say (generate/generate.cc, generate/clip_service.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "generate/clip_output.h"
#include "generate/generate.h"
#include "generate/generator.h"
#include "generate/named_request.h"
#include "generate/request_parcel.h"

namespace vfm::generate {

/// Thread-safety: make() from any thread; the rest from one, and ask() not while clips are made
/// whose request is the first.
class ClipMaker {
 public:
  /// `job`, `output` and `progress` must outlive it.
  ClipMaker(const GenerateJob& job, Generator generator, const std::string& tokenizer_compute,
            const ClipOutput& output, Progress& progress);
  ClipMaker(const ClipMaker&) = delete;
  ClipMaker& operator=(const ClipMaker&) = delete;

  /// The request of the next prompt, or why there is none. Of the first one FP8 or weights in 8
  /// bits are measured, and from then on used; throws Error where they change more than allowed.
  Asked ask(PromptLine line);
  /// What was measured, or is known of another process.
  std::optional<double>& output_error() { return output_error_; }
  /// Measures FP8 or weights in 8 bits on this request, if they are wanted and were not measured.
  void measure(const NamedRequest& request);
  /// Another process has measured them: from now on they are used here, too.
  void use_known(double output_error);
  /// The clip of a request, in its file, or with "-" as output its latent; of no request the error.
  Result make(Asked& asked) const;
  const Generator& generator() const { return generator_; }
  RequestMaker& requests() { return requests_; }

 private:
  Json describe(const NamedRequest& request) const;
  Json record_of(const NamedRequest& request) const;
  void make_file(Result& result) const;
  Latent make_latent(const NamedRequest& request) const;
  SamplerState kept_state(const NamedRequest& request, const std::string& address) const;

  const GenerateJob& job_;
  Progress& progress_;
  const ClipOutput& output_;
  Generator generator_;
  ModelInUse in_use_;
  RequestMaker requests_;
  std::optional<double> output_error_;  ///< of FP8 or 8 bits, measured on the first request
};

/// Throws Error where what was measured is more than the job allows.
void check_output_error(const GenerateJob& job, const std::optional<double>& error);

}  // namespace vfm::generate
