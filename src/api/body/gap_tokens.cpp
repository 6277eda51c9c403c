#include "api/body/gap_tokens.h"

namespace chasqui {

Error no_infill(const std::string& field) {
  return invalid_field(field, field + " cannot be used: this model has no tokens for a gap that is to be filled in");
}

void add_gap(const ServedModel& served, const GapTokens& before, const GapTokens& after, GapTokens& out) {
  const InfillTokens& marks = served.model.info.infill;
  const auto add_after = [&] {
    out.add(marks.suffix);
    out.add(after.all);
  };
  if (served.config.defaults.suffix_first) add_after();
  out.add(marks.prefix);
  out.add(before.all);
  if (!served.config.defaults.suffix_first) add_after();
  out.add(marks.middle);
}

Result<std::vector<Token>> around_gap(const ServedModel& served, std::vector<Token> prefix, std::string_view suffix) {
  const ModelInfo& info = served.model.info;
  if (!info.infill.present()) return no_infill("suffix");
  GapTokens out(served), before(served), after(served);
  const bool begins = info.adds_bos && !prefix.empty() && prefix.front() == info.bos;
  if (begins) {
    out.add(info.bos);
    prefix.erase(prefix.begin());
  }
  before.add(prefix);
  after.add(suffix);
  add_gap(served, before, after, out);
  return std::move(out.all);
}

}  // namespace chasqui
