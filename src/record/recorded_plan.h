// What a step is to be: the plan that a scheduler made, as figures. Of two plans it says whether they agree and, in
// words, where not. A plain value.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.h"
#include "record/byte_stream.h"

namespace chasqui {

// A kind of rows, each of which has these figures.
struct PlanTable {
  std::string_view name;
  std::array<std::string_view, 8> columns;

  constexpr std::size_t width() const {
    std::size_t n = 0;
    while (n < columns.size() && !columns[n].empty()) ++n;
    return n;
  }
};

inline constexpr PlanTable kPlanTables[] = {
    {"step", {"kind", "adapters", "learn", "passes", "cut_by"}},
    {"part", {"request", "slot", "position", "rows", "samples", "draft_tokens", "padding", "tells"}},
    {"save", {"slot", "tokens", "from"}},
    {"trim", {"slot"}},
    {"reuse", {"request", "slot", "keep"}},
    {"restore", {"request", "slot", "keep", "from", "to", "source", "bytes"}},
    {"move", {"from", "to", "exchange"}},
    {"shift", {"request", "slot", "from", "to"}},
    {"padding", {"slot"}},
    {"reading", {"slot", "position"}},
    {"drafting", {"slot", "position", "output"}},
};
inline constexpr std::size_t kPlanTableCount = std::size(kPlanTables);

class RecordedPlan {
 public:
  // In place of what it was.
  void set(const Batch& batch);
  // Of a step that does nothing.
  bool empty() const;
  // The first figure that differs, in words; nothing: they agree. Times that are forecast may differ by a millionth,
  // since other machines round differently.
  std::optional<std::string> difference(const RecordedPlan& recorded) const;

  template <class Io, class Plan>
  friend void pass_plan(Io& io, Plan& plan) {
    for (std::size_t i = 0; i < kPlanTableCount; ++i) io.table(plan.figures_[i], kPlanTables[i].width());
    io(plan.predicted_, plan.copying_, plan.stretch_);
  }

 private:
  void add(std::size_t table, std::initializer_list<std::int64_t> row);

  std::array<std::vector<std::int64_t>, kPlanTableCount> figures_;  // row by row
  Duration predicted_{};
  Duration copying_{};
  Duration stretch_{};
};

}  // namespace chasqui
