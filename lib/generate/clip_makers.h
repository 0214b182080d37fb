// The interface of the processes that make a run's clips. ClipMaker (generate/clip_maker.h) is this
// process with the ranks beside it. ClipWorkers (generate/ranks/clip_workers.h) are workers of this
// machine. For both, generate_clips() reads the prompts, names the clips and writes the manifest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

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

  /// A collective. With a folder for temporary files, which is removed after a part, all processes
  /// begin to make the clips of a part. With "", no part follows. Only the `temporary` of the
  /// first() rank counts. Returns whether a part begins.
  virtual bool begin_part(const std::string& temporary) = 0;

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

/// Asks for the clips of prompts, and names them. Thread-safety: one caller at a time, in order,
/// since names and seeds follow from it.
class AskedClips {
 public:
  /// `job` and `makers` must outlive this object.
  AskedClips(const GenerateJob& job, ClipMakers& makers,
             std::function<std::optional<PromptLine>()> next_prompt)
      : job_(job), makers_(makers), next_prompt_(std::move(next_prompt)) {}
  /// Returns the request of the next prompt, or the error why there is none, or nothing at the end.
  /// Throws Error if FP8 or 8-bit weights change the network's first output more than allowed.
  std::optional<Asked> next();

 private:
  const GenerateJob& job_;
  ClipMakers& makers_;
  std::function<std::optional<PromptLine>()> next_prompt_;
  ClipNames names_;
};

}  // namespace vfm::generate
