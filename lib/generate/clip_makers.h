// The interface of the processes that make a run's clips. ClipMaker (generate/clip_maker.h) is this
// process with the ranks beside it. ClipWorkers (generate/ranks/clip_workers.h) are workers of this
// machine. For both, generate_clips() reads the prompts, names the clips and writes the manifest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "generate/files/clip_output.h"
#include "generate/ranks/clip_messages.h"
#include "generate/request/named_request.h"
#include "share/slots.h"

namespace vfm::generate {

/// Thread-safety: make() from any thread; the rest from one thread at a time.
class ClipMakers {
 public:
  virtual ~ClipMakers() = default;

  /// Returns whether this rank reads the prompts.
  virtual bool first() const { return true; }
  /// Returns true if this rank only helps to make another rank's clips. Then it has done so until
  /// that rank was finished().
  virtual bool helped() { return false; }
  /// If ranks deal the clips among themselves, makes all clips that `next` gives, passes the
  /// results to `done` in the order of the prompts, and returns true. Otherwise returns false: then
  /// any thread may call make().
  virtual bool make_in_rounds(const std::function<std::optional<Asked>()>& /*next*/,
                              const std::function<void(Result&)>& /*done*/,
                              share::Slots& /*slots*/) {
    return false;
  }

  virtual ClipFolder& output() = 0;
  virtual const ModelInUse& in_use() const = 0;  ///< known once a request is asked for
  /// Returns the request of a prompt, or the error why there is none. The request has the prompt's
  /// name, or no name yet. The first request measures FP8 or 8-bit weights, which are used from
  /// then on. Do not call it while the clip of the first request is made.
  virtual Asked ask(Prompt prompt) = 0;
  /// Returns the error of FP8 or 8-bit weights on the first request, once it is measured.
  virtual std::optional<double> output_error() const = 0;
  /// Makes the clip of a request as a file, or its latent if the output is "-". Without a request
  /// returns the error.
  virtual Result make(Asked& asked) = 0;
  /// Writes the job's page about the clips of output(). `incomplete` says why clips are missing, or
  /// is empty.
  virtual void report(const std::string& incomplete) = 0;
  /// Call it when all clips are made and reported.
  virtual void finished() = 0;
};

}  // namespace vfm::generate
