#include "api/body/gap_tokens.h"

#include "api/body/prompt_forms.h"

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

Result<std::vector<Token>> read_suffix(const ServedModel& served, std::string_view suffix) {
  if (!served.model.info.infill.present()) return no_infill("suffix");
  if (auto fits = check_prompt_bytes(served, suffix.size()); !fits) {
    Error error = fits.error();
    error.field = "suffix";
    return error;
  }
  return served.model.tokenizer->tokenize(suffix, AddSpecial::no, ParseSpecial::no);
}

Result<std::vector<Token>> around_gap(const ServedModel& served, std::vector<Token> prefix,
                                      const std::vector<Token>& suffix) {
  const std::size_t tokens = prefix.size() + suffix.size();
  if (tokens > static_cast<std::size_t>(served.limits.context)) {
    return prompt_too_long(tokens, served.limits.context, std::to_string(tokens) + " tokens with suffix");
  }
  const ModelInfo& info = served.model.info;
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
