// Decodes (with --isolate) in separate processes without network, without files and with little
// memory, so that an attack on a decoder affects only the file that is decoded.
//
// A helper process without threads or data is forked before the program does anything. For each
// Decoder, AudioReader, SoundMeter and SoundSamples the helper forks a child. The parent (the
// program) opens the file and passes its descriptor. The child maps the file, gives up all rights
// that it does not need (confine.h), and only then reads the bytes. If the helper is killed, its
// children end, too, and their files get an Error. For the next file, the program is started as a
// new helper, up to eight times; then the run ends (base/run_end.h).
//
// Parent and child share memory, into which the child decodes pictures (picture_memory.h). Only the
// child writes to it. Pictures that do not fit, or that a codec or conversion put elsewhere, are
// copied to the shared memory (only the rows of cell_rows.h if no other rows are wanted). The child
// works only while its parent waits, in the parent's slot. It decodes a few pictures at a time,
// with the same result as decoding in the parent. If the child fails, the parent has the pictures
// before the failure.
//
// The parent does not trust the child. It copies the facts of a picture, then checks that the
// picture lies within the memory. It also copies pictures before use, unless FrameUse says that
// changes at any time are harmless. A hostile child can give wrong pictures, but cannot harm the
// parent. Only files and bytes in memory can be decoded; a URL is an Error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::media {

/// If argv[1] is this, and argv[2] the number of a descriptor, the program is the helper. It must
/// then start no thread, do nothing but `return serve_isolated(number);`, and leave a terminal's
/// signals to the parent, which ends the children.
constexpr const char* kServeIsolated = "--serve-isolated";

/// Serves as the helper until the other end of `channel` is closed. Returns an exit status.
int serve_isolated(int channel);

/// Forks the helper if `wanted` (begin_isolation() will be called). Call this while the program has
/// one thread. Returns the number for serve_isolated() in the helper, and -1 in the program. If
/// forking fails, begin_isolation() starts a helper, which takes as long as a start of the program.
int fork_isolation(bool wanted);

/// With input_limits().isolate: uses the forked helper or starts one, which tests once whether a
/// process can be confined. Throws Error{usage} if vfm was built without libseccomp, or the system
/// refuses.
void begin_isolation();

}  // namespace vfm::media
