#include "app/progress_bar.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <unistd.h>

#include "base/log.h"
#include "base/log_sink.h"

namespace chasqui {

namespace {
constexpr int kWidth = 24;
}  // namespace

ProgressBar::ProgressBar(std::string what, End end, bool logs)
    : what_(std::move(what)), end_(end), logs_(logs), terminal_(::isatty(STDERR_FILENO) == 1), began_(clock_.now()) {}

ProgressBar::~ProgressBar() {
  if (terminal_ && !done_ && percent_ >= 0) std::fputs("\r\033[K", stderr);
}

bool ProgressBar::show(double share) {
  const int percent = static_cast<int>(std::clamp(share, 0.0, 1.0) * 100);
  if (terminal_ && percent != percent_) draw(percent);
  return true;
}

void ProgressBar::draw(int percent) {
  if (percent_ < 0) flush_log();  // lines before it are not to come in the middle of it
  percent_ = percent;
  std::string bar(static_cast<std::size_t>(percent * kWidth / 100), '#');
  bar.resize(kWidth, '.');
  std::fprintf(stderr, "\r%s [%s] %3d %%\033[K", what_.c_str(), bar.c_str(), percent);
}

void ProgressBar::done() {
  done_ = true;
  const double took = to_seconds(clock_.now() - began_);
  if (!terminal_) {
    if (logs_) log_info("done: " + what_, {{"seconds", took}});
  } else if (end_ == End::goes) {
    std::fputs("\r\033[K", stderr);
  } else {
    draw(100);
    std::fprintf(stderr, "  %.1f s\n", took);
  }
}

}  // namespace chasqui
