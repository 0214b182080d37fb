# What the tests of vfm-clip and its verbs begin with: media that a file of tests makes once, and links to them.
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

load ../helpers
bats_require_minimum_version 1.5.0

setup() { setup_media; }

# media_folder: for a setup_file. $MEDIA, a folder with shots.mp4 (make_shots), is made and is the current one then.
media_folder() {
  export MEDIA="$BATS_FILE_TMPDIR/media"
  mkdir "$MEDIA"
  cd "$MEDIA" || return 1
  make_shots shots.mp4
  x264=(-c:v libx264 -preset ultrafast -pix_fmt yuv420p)
}

# setup_media: for a setup(). The files of $MEDIA by links in the test's folder.
setup_media() {
  setup_tools
  ln -s "$MEDIA"/* .
}
