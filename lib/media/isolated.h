// Decoding in processes of their own, which have no network, no files and little memory: what a
// hostile file does to a decoder there ends that file alone.
//
// A helper, which has no threads and has read nothing, is forked before the program does anything;
// one that is killed is started as the program once more. For each Decoder, AudioReader,
// SoundMeter and SoundSamples the helper forks a child. The parent opens the file that was named,
// and hands over its descriptor; the child maps it, gives up all it does not need (confine.h), and
// only then looks at the bytes. A helper that is killed takes its children with it: their files
// have an Error, and the next file has it started again, up to eight times; then the run ends
// (base/run_end.h).
//
// Pictures come back in memory that both map, of which the parent writes none. A child decodes into
// it (picture_memory.h); what has no room there, and what a codec or a conversion has elsewhere, is
// copied to it, and of a picture of which only cells are wanted their rows. The child works only
// while its parent waits: so on its parent's slot, a few pictures at a time. What it decodes is
// what is decoded without it; where it fails, its parent has had what came before. A picture stays
// as it is until the parent is done with it, where the child does as it should.
//
// The parent believes nothing: it copies what is said of pictures, then checks that they lie where
// they can. It copies pictures, too, before anybody uses them; but where FrameUse
// says that it is harmless when they change at any time, they are read where they lie.
//
// It takes what the parent may read as it is: a picture that is wrong, not a parent that fails.
// Files and bytes in memory alone; an address is an Error (a child has no network).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::media {

/// The argument by which a program is the helper: argv[1], followed by the number of a descriptor.
/// The program then does nothing but `return serve_isolated(number);`, starts no thread before, and
/// leaves signals of a terminal to its parent, which ends its children.
constexpr const char* kServeIsolated = "--serve-isolated";

/// Serves until the other end of `channel` is closed. Returns an exit status.
int serve_isolated(int channel);

/// `wanted` is whether begin_isolation() will be called. While the program has one thread: forks
/// the helper, in which it returns the number for serve_isolated(); in the program, -1. Where that
/// did not go, begin_isolation() starts one, which takes as long as the program's own start.
int fork_isolation(bool wanted);

/// With input_limits().isolate: has the helper, or starts it, and has it try out once whether a
/// process can be confined. Throws Error{usage} where this vfm was built without what confines a
/// child (libseccomp), or this system refuses it.
void begin_isolation();

}  // namespace vfm::media
