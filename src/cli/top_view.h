// The picture of `chasqui top`: from samples of /metrics to the lines of a screen. Pure, so that it can be tested.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/metrics_sample.h"
#include "cli/sequence_sample.h"
#include "cli/served_list.h"
#include "cli/terminal.h"

namespace chasqui::cli {

// Values from left to right, ▁ to █; a blank where there is none. Of the last `width`.
std::string sparkline(const std::deque<std::optional<double>>& values, std::size_t width);

// What the lists have room for: each a part, or one of them all.
enum class TopFocus { overview, models, tenants, sequences };

class TopView {
 public:
  // What /props says of the server, in a line.
  void describe(std::string title) { title_ = std::move(title); }
  // `seconds` since the sample before.
  void add(MetricsSample sample, double seconds);
  // The sequences that run and wait; nothing, and why, where the server does not say.
  void show(std::optional<SequenceSample> sequences, std::string why_not, double seconds);
  // The models of the server; none where it does not say.
  void show_models(std::vector<ServedLine> models) { models_ = std::move(models); }
  void focus(TopFocus focus) { focus_ = focus; }
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
  void append_lists(std::vector<std::string>& lines, std::size_t rows) const;
  double rate(std::string_view name, const Labels& wanted = {}) const;

  std::string title_, fault_;
  std::optional<MetricsSample> before_, now_;
  double seconds_ = 1;
  std::optional<SequenceSample> sequences_before_, sequences_;
  double sequence_seconds_ = 1;
  std::string why_no_sequences_;
  std::vector<ServedLine> models_;
  TopFocus focus_ = TopFocus::overview;
  History tokens_, first_, next_;
};

}  // namespace chasqui::cli
