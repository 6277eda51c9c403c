#include "api/openai/reasoning_route.h"

#include "api/body/fields.h"
#include "api/core/answer.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/model_table.h"
#include "api/core/served_model.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// Offload pool. The id of the answer.
Result<std::string> read_control(const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const auto id = fields.string("id");
  if (!id || id->empty()) fields.refuse("id", "the id of an answer, a string");
  if (fields.string("action") != "reasoning_end") fields.refuse("action", "reasoning_end");
  if (!fields.ok()) return fields.error();
  return std::string(*id);
}

// Of whichever model; null: there is none.
ReasoningSwitchPtr find_switch(const ModelTable& models, std::uint32_t tenant, const std::string& id) {
  for (const ServedModel* const served : models.all_versions()) {
    if (ReasoningSwitchPtr one = served->switches.find(tenant, id)) return one;
  }
  return nullptr;
}

}  // namespace

Handled handle_control(const ModelTable& models, Call call) {
  net::OffloadTerms terms = reading_terms(call.caller, call.body);
  auto work = [body = std::move(call.body)] { return read_control(body); };
  const Result<std::string> id = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (!id) co_return id.error();
  const ReasoningSwitchPtr one = find_switch(models, call.caller.tenant.id, *id);
  if (one != nullptr) one->end.raise();
  std::string body = one != nullptr
                         ? R"({"success":true})"
                         : R"({"success":false,"message":"no answer of this id is running whose request said )"
                           R"(reasoning_control"})";
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

}  // namespace chasqui
