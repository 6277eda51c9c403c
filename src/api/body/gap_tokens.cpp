#include "api/body/gap_tokens.h"

namespace chasqui {

Error no_infill(const std::string& field) {
  return invalid_field(field, field + " cannot be used: this model has no tokens for a gap that is to be filled in");
}

Result<std::vector<Token>> around_gap(const ServedModel& served, std::vector<Token> prefix, std::string_view suffix) {
  const ModelInfo& info = served.model.info;
  if (!info.infill.present()) return no_infill("suffix");
  GapTokens out(served);
  const bool begins = info.adds_bos && !prefix.empty() && prefix.front() == info.bos;
  if (begins) {
    out.add(info.bos);
    prefix.erase(prefix.begin());
  }
  out.add(info.infill.prefix);
  out.add(prefix);
  out.add(info.infill.suffix);
  out.add(suffix);
  out.add(info.infill.middle);
  return std::move(out.all);
}

}  // namespace chasqui
