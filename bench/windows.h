// Windows of messages, each with a buffer of its own: how many, and how far apart. The same for stream.c and
// its limits.
#pragma once

#include "measure.h"

enum { longest_window = 64, window_bytes = 8 << 20 };

/// From one message's buffer to the next one's.
static inline size_t distance_of(size_t bytes) { return (bytes + cache_line - 1) / cache_line * cache_line; }

static inline int window_of(size_t bytes) {
  size_t window = window_bytes / distance_of(bytes);
  return window < 2 ? 2 : window > longest_window ? longest_window : (int)window;
}

/// Bytes that the buffers of any window need.
static inline size_t space_of_windows(const struct arguments* arguments) {
  size_t largest = 2 * largest_size(arguments);
  return (largest > window_bytes ? largest : window_bytes) + longest_window * cache_line;
}
