#include "store/http_objects.h"

#include <utility>

#include "store/object_name.h"

namespace chasqui::store {

// One answer for each that is a name, in their order.
std::vector<HttpAnswer> HttpObjects::ask(const char* method, std::span<const std::string> names,
                                         std::size_t most) const {
  std::vector<HttpCall> calls;
  for (const std::string& name : names) {
    if (!name_fault(name)) calls.push_back({method, url_of(name), {}, {}, most});
  }
  return http.run(calls);
}

std::vector<Result<std::vector<std::byte>>> HttpObjects::get(std::span<const std::string> names,
                                                             std::size_t most) const {
  std::vector<Result<std::vector<std::byte>>> out;
  auto answers = ask("GET", names, most);
  auto answer = answers.begin();
  for (const std::string& name : names) {
    if (const auto fault = name_fault(name)) {
      out.push_back(*fault);
      continue;
    }
    if (answer->status == 200) {
      out.push_back(std::move(answer->body));
    } else {
      out.push_back(refusal(*answer));
    }
    ++answer;
  }
  return out;
}

ObjectStore::Outcomes HttpObjects::remove(std::span<const std::string> names) const {
  ObjectStore::Outcomes out;
  const auto answers = ask("DELETE", names, HttpCall{}.most);
  auto answer = answers.begin();
  for (const std::string& name : names) {
    out.push_back(name_fault(name));
    if (out.back()) continue;
    if (!is_success(*answer)) {
      Error error = refusal(*answer);
      if (error.code != ErrorCode::not_found) out.back() = std::move(error);
    }
    ++answer;
  }
  return out;
}

}  // namespace chasqui::store
