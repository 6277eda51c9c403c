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

int percent_of(double share) { return static_cast<int>(std::clamp(share, 0.0, 1.0) * 100); }
}  // namespace

ProgressBar::ProgressBar(std::string what, End end, bool logs)
    : what_(std::move(what)), end_(end), logs_(logs), terminal_(::isatty(STDERR_FILENO) == 1), began_(clock_.now()) {}

ProgressBar::~ProgressBar() {
  if (!terminal_ || done_ || percent_ < 0) return;
  show_status(std::string(kEraseLine));
  flush_log();
}

bool ProgressBar::show(double share) {
  const int percent = percent_of(share);
  if (terminal_ && percent != percent_) draw(percent);
  return true;
}

void ProgressBar::show(double share, std::string more) {
  more_ = std::move(more);
  if (terminal_) draw(percent_of(share));
}

void ProgressBar::draw(int percent) {
  percent_ = percent;
  show_status(picture(percent));
}

std::string ProgressBar::picture(int percent) const {
  std::string bar(static_cast<std::size_t>(percent * kWidth / 100), '#');
  bar.resize(kWidth, '.');
  char share[8];
  std::snprintf(share, sizeof share, "%3d %%", percent);
  return std::string(kEraseLine) + what_ + " [" + bar + "] " + share + more_;
}

void ProgressBar::done() {
  done_ = true;
  more_.clear();
  const double took = to_seconds(clock_.now() - began_);
  if (!terminal_) {
    if (logs_) log_info("done: " + what_, {{"seconds", took}});
    return;
  }
  char ending[32];
  std::snprintf(ending, sizeof ending, "  %.1f s\n", took);
  show_status(end_ == End::goes ? std::string(kEraseLine) : picture(100) + ending);
  flush_log();  // before anybody writes to standard output
}

}  // namespace chasqui
