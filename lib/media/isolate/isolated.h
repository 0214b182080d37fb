// Decoding in processes of their own, which have no network, no files and little memory: an attack
// on a decoder there affects only its own file.
//
// A helper without threads or data is forked before the program does anything; if it is killed, the
// program is started again as a new helper. For each Decoder, AudioReader,
// SoundMeter and SoundSamples the helper forks a child. The parent opens the named file, and passes
// its descriptor; the child maps it, gives up all it does not need (confine.h), and only then reads
// the bytes. When a helper is killed its children end, too: their files get an Error, and the next
// file restarts it, up to eight times; then the run ends (base/run_end.h).
//
// Pictures come back in memory that both map, where only the child writes. It decodes into that
// memory (picture_memory.h); pictures that do not fit, or that a codec or conversion put elsewhere,
// are copied to it, or only the rows of their cells if that is all wanted. The child works only
// while its parent waits, so on its parent's slot, a few pictures at a time. It gives the same
// pictures as decoding in the parent; if it fails, the parent has the earlier ones. A well-behaved
// child keeps a picture unchanged until the parent is done with it.
//
// The parent trusts nothing: it copies the facts of pictures, then checks that they lie within the
// memory. It also copies pictures before use, unless FrameUse says that changes at any time are
// harmless: then they are read in place.
//
// So a hostile child can give wrong pictures, but not harm the parent. Only files and bytes in
// memory can be decoded; an address is an Error (a child has no network).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::media {

/// The argument by which a program is the helper: argv[1], followed by the number of a descriptor.
/// The program then does nothing but `return serve_isolated(number);`, starts no thread before, and
/// leaves a terminal's signals to its parent, which ends its children.
constexpr const char* kServeIsolated = "--serve-isolated";

/// Serves until the other end of `channel` is closed. Returns an exit status.
int serve_isolated(int channel);

/// `wanted` is whether begin_isolation() will be called. Call it while the program has one thread:
/// forks the helper, where it returns the number for serve_isolated(); in the program it returns
/// -1. If that fails, begin_isolation() starts a helper, which takes as long as the program's own
/// start.
int fork_isolation(bool wanted);

/// With input_limits().isolate: takes or starts the helper, and lets it test once whether a process
/// can be confined. Throws Error{usage} if this vfm was built without libseccomp, or the system
/// refuses.
void begin_isolation();

}  // namespace vfm::media
