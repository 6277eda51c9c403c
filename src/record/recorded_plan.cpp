#include "record/recorded_plan.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace chasqui {
namespace {

// Their places in kPlanTables.
enum Table : std::size_t { kStep, kPart, kSave, kTrim, kReuse, kRestore, kMove, kShift, kPadding, kReading, kDrafting };
static_assert(kDrafting + 1 == kPlanTableCount);

bool about_equal(Duration a, Duration b) {
  const Duration::rep apart = std::abs(a.count() - b.count());
  return apart <= 1 + std::max(std::abs(a.count()), std::abs(b.count())) / 1'000'000;
}

std::int64_t bytes_of(const KvSnapshotPtr& snapshot) {
  return snapshot ? static_cast<std::int64_t>(snapshot->size()) : -1;
}

std::string figure_of(std::string_view column, std::int64_t figure) {
  if (column == "kind") return figure == 0 ? "decode" : "prefill";
  return std::to_string(figure);
}

// "request 5 in slot 2", "slot 2" …: whose row it is, as far as it says.
std::string owner(const PlanTable& table, const std::int64_t* row) {
  std::string out;
  for (std::size_t c = 0; c < table.width(); ++c) {
    if (table.columns[c] == "request" || table.columns[c] == "slot") {
      out += (out.empty() ? "" : ", ") + std::string(table.columns[c]) + ' ' + std::to_string(row[c]);
    }
  }
  return out;
}

std::optional<std::string> table_difference(const PlanTable& table, const std::vector<std::int64_t>& planned,
                                            const std::vector<std::int64_t>& recorded) {
  const std::size_t width = table.width();
  const std::size_t both = std::min(planned.size(), recorded.size());
  const auto apart =
      std::mismatch(planned.begin(), planned.begin() + static_cast<std::ptrdiff_t>(both), recorded.begin()).first;
  const auto place = static_cast<std::size_t>(apart - planned.begin());
  const std::string name(table.name);
  if (place < both) {
    const std::size_t row = place / width;
    const std::string_view column = table.columns[place % width];
    const std::string whose = owner(table, &recorded[row * width]);
    return name + " " + std::to_string(row) + (whose.empty() ? "" : " (" + whose + ")") + ": " + std::string(column) +
           " is " + figure_of(column, planned[place]) + ", recorded was " + figure_of(column, recorded[place]);
  }
  if (planned.size() == recorded.size()) return std::nullopt;
  const bool more = planned.size() > recorded.size();
  const std::string whose = owner(table, (more ? planned : recorded).data() + both);
  return name + "s: " + std::to_string(planned.size() / width) + ", recorded were " +
         std::to_string(recorded.size() / width) +
         (whose.empty() ? "" : (more ? "; one more is of " : "; missing is ") + whose);
}

}  // namespace

void RecordedPlan::add(std::size_t table, std::initializer_list<std::int64_t> row) {
  figures_[table].insert(figures_[table].end(), row);
}

void RecordedPlan::set(const Batch& batch) {
  for (auto& figures : figures_) figures.clear();
  predicted_ = batch.predicted;
  copying_ = batch.copying;
  stretch_ = batch.stretch;
  // Of a batch without rows the kind says nothing, and is what it was the last time.
  const bool prefill = !batch.rows.empty() && batch.kind == Batch::Kind::prefill;
  add(kStep, {prefill, static_cast<std::int64_t>(id_of(batch.adapters)), batch.learn, batch.passes, batch.cut_by});
  for (const BatchPart& part : batch.parts) {
    const TokenCount position = batch.rows[static_cast<std::size_t>(part.first_row)].position;
    add(kPart, {static_cast<std::int64_t>(part.request->id.value), part.slot.value, position, part.rows, part.samples,
                part.draft_tokens, part.padding, part.tells});
  }
  for (const SlotSave& save : batch.saves) add(kSave, {save.slot.value, save.tokens, save.from});
  for (const SlotId slot : batch.trims) add(kTrim, {slot.value});
  for (const SlotReuse& reuse : batch.reuses) {
    add(kReuse, {static_cast<std::int64_t>(reuse.request.value), reuse.slot.value, reuse.keep});
  }
  for (const SlotRestore& restore : batch.restores) {
    add(kRestore, {static_cast<std::int64_t>(restore.request.value), restore.slot.value, restore.keep, restore.from,
                   restore.end(), restore.source.value, bytes_of(restore.snapshot)});
  }
  for (const SlotMove& move : batch.moves) add(kMove, {move.from.value, move.to.value, move.exchange});
  for (const SlotShift& shift : batch.shifts) {
    add(kShift, {static_cast<std::int64_t>(shift.request.value), shift.slot.value, shift.from, shift.to});
  }
  for (auto row = batch.rows.end() - batch.padding; row != batch.rows.end(); ++row) add(kPadding, {row->slot.value});
  for (const Row& row : batch.drafting.reading) add(kReading, {row.slot.value, row.position});
  for (const Row& row : batch.drafting.rows) add(kDrafting, {row.slot.value, row.position, row.output});
}

bool RecordedPlan::empty() const {
  return figures_[kPart].empty() && figures_[kSave].empty() && figures_[kRestore].empty();
}

std::optional<std::string> RecordedPlan::difference(const RecordedPlan& recorded) const {
  for (std::size_t i = 0; i < kPlanTableCount; ++i) {
    if (auto found = table_difference(kPlanTables[i], figures_[i], recorded.figures_[i])) return found;
  }
  const std::tuple<std::string_view, Duration, Duration> times[] = {
      {"predicted", predicted_, recorded.predicted_},
      {"copying", copying_, recorded.copying_},
      {"stretch", stretch_, recorded.stretch_},
  };
  for (const auto& [name, planned, was] : times) {
    if (about_equal(planned, was)) continue;
    return std::string(name) + " is " + std::to_string(planned.count()) + " ns, recorded was " +
           std::to_string(was.count()) + " ns";
  }
  return std::nullopt;
}

}  // namespace chasqui
