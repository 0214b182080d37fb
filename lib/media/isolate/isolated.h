// With --isolate, decodes in separate processes that have no network, no files and little memory.
// An attack on a decoder affects only the file that is decoded.
//
// For each Decoder, AudioReader, SoundMeter and SoundSamples of the program (the parent), a helper
// process forks a child. The child gives up its rights (confine.h) before it reads the file. If the
// helper is killed, its children end, and their files fail with an Error. The program starts a new
// helper up to eight times. If a helper is killed again, the run ends (base/run_end.h).
//
// Results are the same as without --isolate. If a child fails, the parent still gets the pictures
// before the failure. A hostile child can give wrong pictures, but cannot harm the parent. The
// parent copies pictures before use, unless FrameUse allows changes at any time. Files, objects
// (far_source.h) and bytes in memory can be decoded. The parent reads objects for its children. An
// address of another protocol is an Error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::media {

/// If argv[1] is this text, and argv[2] the number of a descriptor, the program is the helper. The
/// helper must start no thread, leave signals of the terminal to the parent, and do only `return
/// serve_isolated(number);`.
constexpr const char* kServeIsolated = "--serve-isolated";

/// Works as the helper until the other end of `channel` is closed. Returns the exit status.
int serve_isolated(int channel);

/// If `wanted` is true, forks the helper. Must be called while the program has one thread. In the
/// helper, returns the descriptor to pass to serve_isolated() as `channel`. In the parent, returns
/// -1. If forking fails, begin_isolation() starts a helper.
int fork_isolation(bool wanted);

/// If input_limits().isolate is set, uses the forked helper or starts a helper, and tests whether a
/// process can be confined. Throws Error{usage} if vfm was built without libseccomp, or if the
/// system refuses.
void begin_isolation();

}  // namespace vfm::media
