// Preloaded into a program, it makes FFmpeg's video decoders do what a hostile file may make them do, by the width of the
// coded picture: 98 hangs asleep, 100 hangs busy, 102 reads where nothing is, 104 takes memory without end, 106 opens a
// file and an address, and dies where either works, 108 of a process of its own counts on that it gets on, and does
// not, 110 hangs asleep after 60000 ticks, 112 of a process of its own answers its parent with an error of no known kind,
// 114 gives its first picture again and again.
// Pictures of other widths are decoded as ever. Who hangs asleep makes the file $HANGS before.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// What a process shares with its parent begins with the count of its beats.
static volatile unsigned long* shared;

void* mmap(void* at, size_t size, int access, int flags, int fd, off_t offset) {
  void* const memory = (void*)syscall(SYS_mmap, at, size, access, flags, fd, offset);
  if ((flags & MAP_SHARED) && (access & PROT_WRITE) && memory != MAP_FAILED) shared = memory;
  return memory;
}
void* mmap64(void* at, size_t size, int access, int flags, int fd, off_t offset) {
  return mmap(at, size, access, flags, fd, offset);
}

// An answer begins with what it is, an error, and of what kind it is.
static int lies;
ssize_t sendmsg(int channel, const struct msghdr* message, int flags) {
  int* const answer = message->msg_iov[0].iov_base;
  if (lies) answer[0] = 2, answer[1] = -100000000;
  return syscall(SYS_sendmsg, channel, message, flags);
}

static void misbehave(int width, const AVPacket* packet) {
  if (width == 112) lies = 1;
  while (width == 108 && shared) ++*shared;
  volatile int* nowhere = NULL;
  if (width == 98 || (width == 110 && packet && packet->pts > 60000)) {
    if (getenv("HANGS")) close(open(getenv("HANGS"), O_WRONLY | O_CREAT, 0644));
    for (;;) pause();
  }
  if (width == 100)
    for (volatile int i = 0;; ++i) {
    }
  if (width == 102) *nowhere = 1;
  while (width == 104) {
    char* const block = malloc(1 << 24);
    if (!block) break;
    memset(block, 1, 1 << 24);
  }
  if (width == 106 && (open("/dev/null", O_RDONLY) >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0 || fork() >= 0 ||
                       kill(getppid(), SIGKILL) == 0))
    abort();
}

// Not to FFmpeg itself, which looks at the first pictures of a file.
static int is_endless(const AVCodecContext* codec) {
  return codec->codec_type == AVMEDIA_TYPE_VIDEO && codec->width == 114 && codec->opaque;
}

int avcodec_receive_frame(AVCodecContext* codec, AVFrame* frame) {
  static AVFrame* first;
  if (first && is_endless(codec)) {
    first->pts = ++first->best_effort_timestamp;
    return av_frame_ref(frame, first);
  }
  const int result =
      ((int (*)(AVCodecContext*, AVFrame*))dlsym(RTLD_NEXT, "avcodec_receive_frame"))(codec, frame);
  if (result == 0 && is_endless(codec)) first = av_frame_clone(frame);
  return result;
}

int avcodec_send_packet(AVCodecContext* codec, const AVPacket* packet) {
  const int is_video = codec->codec_type == AVMEDIA_TYPE_VIDEO;
  if (is_video) misbehave(codec->width, packet);
  if (is_video && codec->width == 104) return AVERROR(ENOMEM);
  return ((int (*)(AVCodecContext*, const AVPacket*))dlsym(RTLD_NEXT, "avcodec_send_packet"))(codec, packet);
}
