// How far something is that takes its time before anybody is served: a bar where standard error is a terminal, and
// where it is not, a line in the log when it is done. One thread.
#pragma once

#include <string>

#include "base/clock.h"

namespace chasqui {

class ProgressBar {
 public:
  enum class End { stays, goes };  // whether the bar stays on the screen

  // "loading the model"; `logs`: who has no terminal reads of it in the log.
  ProgressBar(std::string what, End end, bool logs);
  // It came to nothing, unless done() was called.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // 0 … 1. Always true: go on.
  bool show(double share);
  // … with what is told beside it, at once.
  void show(double share, std::string more);
  void done();

 private:
  void draw(int percent);
  std::string picture(int percent) const;

  const std::string what_;
  const End end_;
  const bool logs_;
  const bool terminal_;
  const RealClock clock_;
  const TimePoint began_;
  int percent_ = -1;  // as drawn
  std::string more_;
  bool done_ = false;
};

}  // namespace chasqui
