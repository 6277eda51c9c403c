// The picture of `chasqui top`: from samples of /metrics to the lines of a screen. Pure, so that it can be tested.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/metrics_sample.h"
#include "cli/terminal.h"

namespace chasqui::cli {

// Values from left to right, ▁ to █; a blank where there is none. Of the last `width`.
std::string sparkline(const std::deque<std::optional<double>>& values, std::size_t width);

class TopView {
 public:
  // What /props says of the server, in a line.
  void describe(std::string title) { title_ = std::move(title); }
  // `seconds` since the sample before.
  void add(MetricsSample sample, double seconds);
  // What to say instead of new figures; empty: all is well.
  void complain(std::string fault) { fault_ = std::move(fault); }

  // At most so many lines of at most so many characters, without ends of lines.
  std::vector<std::string> lines(Size size, const Paint& paint) const;

 private:
  using History = std::deque<std::optional<double>>;
  static constexpr std::size_t kHistory = 240;

  void remember(History& history, std::optional<double> value);
  std::string rates() const;
  std::string rows() const;
  std::string queue() const;
  std::string tenants() const;
  std::vector<std::string> workers() const;
  std::vector<std::string> caches() const;
  double rate(std::string_view name, const Labels& wanted = {}) const;

  std::string title_, fault_;
  std::optional<MetricsSample> before_, now_;
  double seconds_ = 1;
  History tokens_, first_, next_;
};

}  // namespace chasqui::cli
